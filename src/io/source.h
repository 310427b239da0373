/* source.h: where bytes come from: bundles (folders, archives, plain files) and their members.
 *
 * A bundle is a list of named members. Opening a member gives a source: its bytes in memory, read-only. A
 * plain file and a stored zip member are mapped in place; compressed members are unpacked into the bundle's
 * spill file (unlinked from the start, in TMPDIR) and mapped from there, so that no tensor ever lives in
 * anonymous memory. Sources belong to their bundle and live as long as it does.
 *
 *     folder  --\
 *     zip     ----> td_bundle --> members --> td_source {name, data, size}
 *     tar.*   --/        \--> spill file: unpacked members, and scratch for readers that must decode
 */
#ifndef TD_IO_SOURCE_H
#define TD_IO_SOURCE_H

#include "base/job.h"
#include "base/status.h"

struct td_bundle;

struct td_source {
    const char *name;    /* path within the bundle, '/' between folders; a plain file's base name */
    const uint8_t *data; /* never NULL, not even when empty */
    size_t size;
    int64_t written; /* when the file on disk was last written, in ns; 0: a member of an archive */
    struct td_bundle *bundle;
};

/* A folder (walked at once, files opened when asked for) or a plain file, as a bundle of one. */
TD_CHECK tdbg_status td_bundle_open(struct td_bundle **out, const char *path, struct td_job *job,
                                    struct tdbg_error *error);

/* Bytes already in memory as a bundle of one, for tests, fuzzing and embedding. Borrowed, not copied. */
TD_CHECK tdbg_status td_bundle_open_memory(struct td_bundle **out, const char *name, const void *data,
                                           size_t size, struct tdbg_error *error);

/* The source's bytes are an archive tdbg can look into: zip, tar, or gzip/xz/zstd/bzip2 of a tar or of one
 * file. */
bool td_bundle_probe(const struct td_source *source);

/* Looks into an archive. The source must outlive the bundle. Compressed streams are unpacked here, with
 * progress and cancel through job. */
TD_CHECK tdbg_status td_bundle_open_archive(struct td_bundle **out, const struct td_source *source,
                                            struct td_job *job, struct tdbg_error *error);
void td_bundle_close(struct td_bundle **bundle);

bool td_bundle_is_plain_file(const struct td_bundle *bundle);
size_t td_bundle_count(const struct td_bundle *bundle);
const char *td_bundle_name(const struct td_bundle *bundle, size_t index);

/* A member that is known to be unreadable (encrypted, a device, a bad link) fails here with the reason. */
TD_CHECK tdbg_status td_bundle_source(struct td_bundle *bundle, size_t index, const struct td_source **out,
                                      struct tdbg_error *error);

/* The file `name` beside the source, as an index or external data names it: in the same folder on disk, or
 * the same folder of the archive. Absolute names and ".." are refused. */
TD_CHECK tdbg_status td_source_sibling(const struct td_source *source, const char *name,
                                       const struct td_source **out, struct tdbg_error *error);

/* Writable, zeroed memory backed by the spill file, for what must be decoded before it can be viewed. Lives
 * as long as the bundle. */
TD_CHECK tdbg_status td_bundle_scratch(struct td_bundle *bundle, size_t size, void **out,
                                       struct tdbg_error *error);

#endif
