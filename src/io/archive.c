/* archive.c: looking into archives: recognises the container by its content and lists its members.
 *
 *     zip                          members in place; the deflated ones at once    zip.c, zip_inflate.c
 *     tar                          members in place                               tar.c
 *     gzip, xz, zstd, bzip2        unpacked into the spill at once, then          unpack.c
 *         of a tar                     as above
 *         of anything else             one member, named without the suffix
 *
 * A stream that stops too early keeps the members that are whole; the loss is told by one more member,
 * "(end of archive)", that cannot be opened. A damaged stream is refused as a whole (see decoder.h).
 */
#include "io/bundle.h"
#include "io/map.h"
#include "io/path.h"
#include "io/tar.h"
#include "io/unpack.h"

#include <stdlib.h>
#include <string.h>

bool td_bundle_probe(const struct td_source *source)
{
    return td_zip_probe(source->data, source->size) ||
           td_packing_of(source->data, source->size) != TD_PACKING_NONE ||
           td_tar_probe(source->data, source->size);
}

/* All of them will be looked at: what is deflated is unpacked now, by all threads. */
static tdbg_status inflate_zip(struct td_bundle *bundle, struct td_job *job, struct tdbg_error *error)
{
    const struct td_zip_member **zipped = calloc(bundle->count + 1, sizeof *zipped);
    const uint8_t **data = calloc(bundle->count + 1, sizeof *data);
    struct td_member **listed = calloc(bundle->count + 1, sizeof *listed);
    size_t count = 0;
    tdbg_status status = zipped && data && listed ? TDBG_OK : td_fail_nomem(error);
    for (size_t i = 0; status == TDBG_OK && i < bundle->count; i++)
        if (bundle->members[i].kind == TD_MEMBER_ZIPPED) {
            listed[count] = &bundle->members[i];
            zipped[count++] = bundle->members[i].zipped;
        }
    if (status == TDBG_OK)
        td_zip_inflate(&bundle->zip, zipped, count, bundle, job, data);
    for (size_t i = 0; i < count; i++)
        if (data[i]) {
            listed[i]->kind = TD_MEMBER_BYTES;
            listed[i]->size = (size_t)zipped[i]->size;
            listed[i]->data = data[i];
        }
    free(listed);
    free(data);
    free(zipped);
    return status;
}

static tdbg_status list_zip(struct td_bundle *bundle, const struct td_source *source, struct td_job *job,
                            struct tdbg_error *error)
{
    TD_TRY(td_zip_open(&bundle->zip, source->data, source->size, error));
    for (size_t i = 0; i < bundle->zip.count; i++) {
        const struct td_zip_member *zipped = &bundle->zip.members[i];
        const char *name = td_path_clean(&bundle->arena, zipped->name, strlen(zipped->name));
        if (!name)
            return td_fail_nomem(error);
        if (td_path_hidden(name))
            continue;
        if (!td_path_is_inner(name)) {
            TD_TRY(td_bundle_add_bad(bundle, name, TDBG_UNSUPPORTED, TD_LEADS_OUT, error));
            continue;
        }
        struct td_member member = {.name = name, .kind = TD_MEMBER_ZIPPED, .zipped = zipped};
        TD_TRY(td_bundle_add(bundle, member, error));
    }
    return inflate_zip(bundle, job, error);
}

/* "dumps/a.npy.gz" -> "a.npy" */
static const char *name_within(struct td_bundle *bundle, const char *name)
{
    static const char *const suffixes[] = {".gz", ".xz", ".zst", ".bz2"};
    name = td_path_base(name);
    size_t length = strlen(name);
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        size_t tail = strlen(suffixes[i]);
        if (length > tail && strcasecmp(name + length - tail, suffixes[i]) == 0)
            return td_arena_strndup(&bundle->arena, name, length - tail);
    }
    return td_arena_strdup(&bundle->arena, name);
}

/* Whether somebody has unpacked it already; also not, when that cannot be used: unpacking says why. */
static bool find_unpacked(struct td_unpacked *out, struct td_bundle *bundle, const struct td_source *source,
                          const struct td_job *job)
{
    const char *path = source->bundle->plain;
    if (!job || !job->prepared || !path || strncmp(path, job->prepared, strlen(job->prepared)) != 0)
        return false;
    const char *beside = td_path_beside(&bundle->arena, path, TD_UNPACKED);
    *out = (struct td_unpacked){0};
    return beside && td_spill_adopt(&bundle->spill, beside, &out->data, &out->size, NULL) == TDBG_OK;
}

static tdbg_status list_packed(struct td_bundle *bundle, const struct td_source *source,
                               enum td_packing packing, struct td_job *job, struct tdbg_error *error)
{
    struct td_unpacked unpacked;
    if (!find_unpacked(&unpacked, bundle, source, job))
        TD_TRY(td_unpack(&unpacked, source->data, source->size, packing, &bundle->spill, job, error));
    if (td_map_shrunk(source->data))
        return td_fail(error, TDBG_IO, "the file shrank while it was read");
    if (td_tar_probe(unpacked.data, unpacked.size))
        return td_tar_list(bundle, unpacked.data, unpacked.size, unpacked.cut, job, error);
    const char *name = name_within(bundle, source->name);
    if (!name)
        return td_fail_nomem(error);
    if (unpacked.cut)
        return td_bundle_add_bad(bundle, name, TDBG_CORRUPT, "the compressed stream is cut short", error);
    struct td_member member = {
        .name = name, .kind = TD_MEMBER_BYTES, .data = unpacked.data, .size = unpacked.size};
    return td_bundle_add(bundle, member, error);
}

tdbg_status td_bundle_open_archive(struct td_bundle **out, const struct td_source *source, struct td_job *job,
                                   struct tdbg_error *error)
{
    struct td_bundle *bundle = NULL;
    TD_TRY(td_bundle_make(&bundle, source->bundle, error));
    enum td_packing packing = td_packing_of(source->data, source->size);
    tdbg_status status;
    if (td_zip_probe(source->data, source->size))
        status = list_zip(bundle, source, job, error);
    else if (packing != TD_PACKING_NONE)
        status = list_packed(bundle, source, packing, job, error);
    else if (td_tar_probe(source->data, source->size))
        status = td_tar_list(bundle, source->data, source->size, false, job, error);
    else
        status = td_fail(error, TDBG_UNSUPPORTED, "not an archive");
    if (status == TDBG_OK)
        *out = bundle;
    else
        td_bundle_close(&bundle);
    return status;
}
