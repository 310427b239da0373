/* zip.h: the members of a zip in memory. A stored member is a pointer into the file.
 *
 * Two members of one name: the first is the one td_zip_find gives; the later ones stay in the list with a
 * defect, so that whoever lists them says so.
 */
#ifndef TD_IO_ZIP_H
#define TD_IO_ZIP_H

#include "base/arena.h"
#include "base/status.h"
#include "io/source.h"

struct td_zip_member {
    const char *name;              /* as in the archive; NULs and control codes replaced */
    uint64_t offset, packed, size; /* of the data: where, bytes there, bytes unpacked */
    uint32_t crc;
    uint16_t method; /* 0 stored, 8 deflated; others are listed but cannot be read */
    bool encrypted;
    const char *defect; /* NULL, or why td_zip_read will refuse */
};

struct td_zip {
    const uint8_t *data;
    size_t size;
    struct td_arena arena;
    struct td_zip_member *members; /* in the order of the central directory; folders left out */
    size_t count;
    uint32_t *by_name; /* indices of members, by name and then by index */
};

bool td_zip_probe(const uint8_t *data, size_t size);
TD_CHECK tdbg_status td_zip_open(struct td_zip *out, const uint8_t *data, size_t size,
                                 struct tdbg_error *error);
void td_zip_release(struct td_zip *zip);
const struct td_zip_member *td_zip_find(const struct td_zip *zip, const char *name);

/* The bytes of a member: in place when stored, else inflated into the bundle's scratch space (CRC checked;
 * that of a stored member is not, for it would mean to read all of it). */
TD_CHECK tdbg_status td_zip_read(const struct td_zip *zip, const struct td_zip_member *member,
                                 struct td_bundle *scratch, const uint8_t **data, struct tdbg_error *error);

/* Inflates many members at once, on several CPUs. data[i] gets the bytes of members[i]; NULL where that was
 * not done, and td_zip_read will do it or say why not. This is work done early, and has no failure of its
 * own: call it where all of the members will be read. */
void td_zip_inflate(const struct td_zip *zip, const struct td_zip_member *const *members, size_t count,
                    struct td_bundle *scratch, struct td_job *job, const uint8_t **data);

/* Deflated, whole as far as the directory tells, and of a size that its packed bytes can hold. */
bool td_zip_can_inflate(const struct td_zip_member *member);

#endif
