/* zip.c: listing a zip, and reading its members with ISA-L.
 *
 *     local header  PK 3 4 | needs flags method time crc packed size | lengths | name | extra
 *     data          [data descriptor behind it]
 *     ...
 *     central directory, 46 bytes and text per member
 *                   PK 1 2 | made needs flags method time crc packed size | lengths | disk attributes
 *                   | offset of the local header | name | extra | comment
 *     [zip64 end    PK 6 6 | ... | members(8) directory size(8) directory offset(8)]
 *     [its locator  PK 6 7 | disk | offset of the zip64 end(8) | disks]
 *     end           PK 5 6 | disks | members(2,2) directory size(4) offset(4) | comment
 *
 * Read here and not by a library because of what checkpoints are: files of many gigabytes of stored members
 * that are to be mapped. Debian's minizip loses zip64 sizes and offsets on 64-bit systems and takes the end
 * of the file for zeros; libarchive and libzip do not say where a stored member's bytes are.
 *
 * All numbers are claims: every range is checked against the file, the local header against the directory,
 * and data ranges that overlap are refused, for that is how a small zip unpacks to petabytes.
 */
#include "io/zip.h"

#include "base/checked.h"
#include "base/cursor.h"
#include "base/limits.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <isa-l/crc.h>
#include <isa-l/igzip_lib.h>
#include <stdlib.h>
#include <string.h>

enum { LOCAL_SIZE = 30, CENTRAL_SIZE = 46, END_SIZE = 22, LOCATOR_SIZE = 20, END64_SIZE = 56 };
enum { STORED = 0, DEFLATED = 8 };
enum { FLAG_ENCRYPTED = 1, FLAG_SIZES_BEHIND = 8 }; /* sizes follow the data: zeros in the local header */
enum { EXTRA_ZIP64 = 1 };

/* What a packed member may claim beyond the ratio: an empty deflate block is two bytes. */
#define RATIO_FREE 65536

bool td_zip_probe(const uint8_t *data, size_t size)
{
    return size >= END_SIZE && (memcmp(data, "PK\3\4", 4) == 0 || memcmp(data, "PK\5\6", 4) == 0);
}

static bool take_signature(struct td_cursor *c, const char *signature)
{
    const uint8_t *bytes = td_cursor_take(c, 4);
    return bytes && memcmp(bytes, signature, 4) == 0;
}

/* --- where the directory is ----------------------------------------------------------------------------- */

struct directory {
    uint64_t offset, size, count;
    bool wide; /* zip64: the count is exact; else only its low 16 bits are */
};

/* The zip64 end record, when the locator in front of the end record at `end` leads to one. */
static tdbg_status find_wide(const struct td_zip *zip, size_t end, struct directory *out,
                             struct tdbg_error *error)
{
    if (end < LOCATOR_SIZE || memcmp(zip->data + end - LOCATOR_SIZE, "PK\6\7", 4) != 0)
        return TDBG_OK;
    struct td_cursor c = td_cursor_init(zip->data + end - LOCATOR_SIZE + 8, 8);
    uint64_t at = td_cursor_u64(&c);
    if (!td_range_within(at, END64_SIZE, end) || memcmp(zip->data + at, "PK\6\6", 4) != 0)
        return td_fail_at(error, TDBG_CORRUPT, end - LOCATOR_SIZE, "zip: the zip64 end record is not there");
    c = td_cursor_init(zip->data + at + 32, 24);
    out->wide = true;
    out->count = td_cursor_u64(&c);
    out->size = td_cursor_u64(&c);
    out->offset = td_cursor_u64(&c);
    return TDBG_OK;
}

static tdbg_status find_directory(const struct td_zip *zip, struct directory *out, struct tdbg_error *error)
{
    /* Only a comment of at most 64 KiB may follow the end record. */
    size_t lowest = zip->size > END_SIZE + UINT16_MAX ? zip->size - END_SIZE - UINT16_MAX : 0;
    size_t end = zip->size >= END_SIZE ? zip->size - END_SIZE + 1 : 0;
    bool found = false;
    while (!found && end > lowest) {
        end--;
        const uint8_t *record = zip->data + end;
        size_t comment = (size_t)record[20] | (size_t)record[21] << 8;
        found = memcmp(record, "PK\5\6", 4) == 0 && comment <= zip->size - end - END_SIZE;
    }
    if (!found)
        return td_fail(error, TDBG_CORRUPT, "zip: no directory at the end: cut short or not a zip");
    struct td_cursor c = td_cursor_init(zip->data + end + 10, 10);
    out->wide = false;
    out->count = td_cursor_u16(&c);
    out->size = td_cursor_u32(&c);
    out->offset = td_cursor_u32(&c);
    TD_TRY(find_wide(zip, end, out, error));
    if (!td_range_within(out->offset, out->size, end))
        return td_fail_at(error, TDBG_CORRUPT, end,
                          "zip: a directory of %" PRIu64 " bytes at %" PRIu64 " in a file of %zu", out->size,
                          out->offset, zip->size);
    return TDBG_OK;
}

/* --- its members ---------------------------------------------------------------------------------------- */

/* A record of the directory, as it stands there. */
struct record {
    uint16_t flags, method;
    uint32_t crc;
    uint64_t packed, size, local;
    const uint8_t *name;
    size_t name_length;
};

/* Fields of all ones stand for 64-bit ones in the extra data, in this order. */
static bool widen(struct record *r, const uint8_t *extra, size_t length)
{
    uint64_t *fields[] = {&r->size, &r->packed, &r->local};
    struct td_cursor wide = {.bad = true};
    struct td_cursor c = td_cursor_init(extra, length);
    while (!c.bad && td_cursor_left(&c) >= 4 && wide.bad) {
        uint16_t id = td_cursor_u16(&c), size = td_cursor_u16(&c);
        const uint8_t *body = td_cursor_take(&c, size);
        if (body && id == EXTRA_ZIP64)
            wide = td_cursor_init(body, size);
    }
    for (size_t i = 0; i < 3; i++)
        if (*fields[i] == UINT32_MAX) {
            *fields[i] = td_cursor_u64(&wide);
            if (wide.bad)
                return false;
        }
    return true;
}

static bool read_record(struct td_cursor *c, struct record *out, bool *widened)
{
    bool signature = take_signature(c, "PK\1\2");
    td_cursor_take(c, 4); /* made by, needed to extract */
    out->flags = td_cursor_u16(c);
    out->method = td_cursor_u16(c);
    td_cursor_take(c, 4); /* time and date */
    out->crc = td_cursor_u32(c);
    out->packed = td_cursor_u32(c);
    out->size = td_cursor_u32(c);
    out->name_length = td_cursor_u16(c);
    uint16_t extra_length = td_cursor_u16(c), comment_length = td_cursor_u16(c);
    td_cursor_take(c, 8); /* disk, attributes */
    out->local = td_cursor_u32(c);
    out->name = td_cursor_take(c, out->name_length);
    const uint8_t *extra = td_cursor_take(c, extra_length);
    td_cursor_take(c, comment_length);
    if (!signature || c->bad)
        return false;
    *widened = widen(out, extra, extra_length);
    return true;
}

/* The local header says where the data starts, and must tell the same story. */
static bool read_local(const struct td_zip *zip, const struct record *r, uint64_t *data)
{
    if (!td_range_within(r->local, LOCAL_SIZE, zip->size))
        return false;
    struct td_cursor c = td_cursor_init(zip->data + r->local, zip->size - (size_t)r->local);
    bool signature = take_signature(&c, "PK\3\4");
    td_cursor_take(&c, 2);
    uint16_t flags = td_cursor_u16(&c), method = td_cursor_u16(&c);
    td_cursor_take(&c, 4);
    uint32_t crc = td_cursor_u32(&c), packed = td_cursor_u32(&c), size = td_cursor_u32(&c);
    uint16_t name_length = td_cursor_u16(&c), extra_length = td_cursor_u16(&c);
    const uint8_t *name = td_cursor_take(&c, name_length);
    td_cursor_take(&c, extra_length);
    if (!signature || c.bad || method != r->method || name_length != r->name_length ||
        memcmp(name, r->name, name_length) != 0)
        return false;
    if (!(flags & FLAG_SIZES_BEHIND) && (crc != r->crc || (packed != UINT32_MAX && packed != r->packed) ||
                                         (size != UINT32_MAX && size != r->size)))
        return false;
    *data = zip->size - td_cursor_left(&c);
    return true;
}

static const char *find_defect(const struct td_zip_member *m, const struct directory *directory, bool located)
{
    if (m->encrypted)
        return "encrypted";
    if (m->method != STORED && m->method != DEFLATED)
        return "packed by a method tdbg does not read (neither stored nor deflated)";
    if (!located)
        return "its local header contradicts the directory";
    if (!td_range_within(m->offset, m->packed, directory->offset))
        return "its data runs into the directory";
    if (m->method == STORED && m->packed != m->size)
        return "stored, yet of two sizes";
    return NULL;
}

static tdbg_status read_member(struct td_zip *zip, const struct record *r, const struct directory *directory,
                               bool widened, struct td_zip_member *out, struct tdbg_error *error)
{
    struct td_zip_member member = {
        .packed = r->packed,
        .size = r->size,
        .crc = r->crc,
        .method = r->method,
        .encrypted = r->flags & FLAG_ENCRYPTED,
    };
    bool located = widened && read_local(zip, r, &member.offset);
    member.defect = find_defect(&member, directory, located);
    char *name = td_arena_strndup(&zip->arena, (const char *)r->name, r->name_length);
    if (!name)
        return td_fail_nomem(error);
    for (size_t i = 0; i < r->name_length; i++)
        if (name[i] == 0)
            name[i] = '?';
    td_utf8_clean(name);
    member.name = name;
    *out = member;
    return TDBG_OK;
}

static bool is_folder(const struct record *r)
{
    return r->size == 0 && r->name_length > 0 && r->name[r->name_length - 1] == '/';
}

static tdbg_status read_members(struct td_zip *zip, const struct directory *directory,
                                struct tdbg_error *error)
{
    size_t bytes = (size_t)directory->size, most = bytes / CENTRAL_SIZE;
    if (most > TD_MAX_MEMBERS)
        most = TD_MAX_MEMBERS;
    zip->members = malloc((most + 1) * sizeof *zip->members);
    if (!zip->members)
        return td_fail_nomem(error);
    struct td_cursor c = td_cursor_init(zip->data + directory->offset, bytes);
    uint64_t seen = 0;
    for (; td_cursor_left(&c) >= CENTRAL_SIZE; seen++) {
        struct record record;
        bool widened;
        if (zip->count >= TD_MAX_MEMBERS)
            return td_fail(error, TDBG_LIMIT, "zip: more than %" PRIu64 " members", (uint64_t)TD_MAX_MEMBERS);
        if (!read_record(&c, &record, &widened))
            break;
        if (is_folder(&record))
            continue;
        TD_TRY(read_member(zip, &record, directory, widened, &zip->members[zip->count], error));
        zip->count++;
    }
    if (td_cursor_left(&c) >= CENTRAL_SIZE ||
        (directory->wide ? seen : seen & UINT16_MAX) != directory->count)
        return td_fail_at(error, TDBG_CORRUPT, directory->offset + c.at,
                          "zip: the directory is damaged after %" PRIu64 " members", seen);
    return TDBG_OK;
}

/* --- what the members say about each other -------------------------------------------------------------- */

static int compare_names(const void *a, const void *b, void *context)
{
    const struct td_zip_member *members = context;
    uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
    int order = strcmp(members[i].name, members[j].name);
    return order ? order : i < j ? -1 : i > j;
}

static int compare_offsets(const void *a, const void *b, void *context)
{
    const struct td_zip_member *members = context;
    uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
    uint64_t x = members[i].offset, y = members[j].offset;
    return x != y ? (x < y ? -1 : 1) : i < j ? -1 : i > j;
}

static void mark_doubles(struct td_zip *zip, const uint32_t *by_name)
{
    for (size_t i = 1; i < zip->count; i++) {
        struct td_zip_member *m = &zip->members[by_name[i]];
        if (!m->defect && strcmp(zip->members[by_name[i - 1]].name, m->name) == 0)
            m->defect = "a second member of that name";
    }
}

static void mark_overlaps(struct td_zip *zip, const uint32_t *by_offset)
{
    uint64_t end = 0;
    for (size_t i = 0; i < zip->count; i++) {
        struct td_zip_member *m = &zip->members[by_offset[i]];
        if (m->defect || m->packed == 0)
            continue;
        if (m->offset < end)
            m->defect = "its data overlaps that of another member";
        else
            end = m->offset + m->packed;
    }
}

static tdbg_status relate(struct td_zip *zip, struct tdbg_error *error)
{
    zip->by_name = malloc((zip->count + 1) * sizeof *zip->by_name);
    if (!zip->by_name)
        return td_fail_nomem(error);
    for (size_t i = 0; i < zip->count; i++)
        zip->by_name[i] = (uint32_t)i;
    qsort_r(zip->by_name, zip->count, sizeof *zip->by_name, compare_offsets, zip->members);
    mark_overlaps(zip, zip->by_name);
    qsort_r(zip->by_name, zip->count, sizeof *zip->by_name, compare_names, zip->members);
    mark_doubles(zip, zip->by_name);
    return TDBG_OK;
}

tdbg_status td_zip_open(struct td_zip *out, const uint8_t *data, size_t size, struct tdbg_error *error)
{
    struct td_zip zip = {.data = data, .size = size};
    struct directory directory = {0};
    TD_TRY(find_directory(&zip, &directory, error));
    td_arena_init(&zip.arena, TD_MAX_METADATA);
    tdbg_status status = read_members(&zip, &directory, error);
    if (status == TDBG_OK)
        status = relate(&zip, error);
    if (status == TDBG_OK)
        *out = zip;
    else
        td_zip_release(&zip);
    return status;
}

void td_zip_release(struct td_zip *zip)
{
    free(zip->members);
    free(zip->by_name);
    td_arena_release(&zip->arena);
    *zip = (struct td_zip){0};
}

const struct td_zip_member *td_zip_find(const struct td_zip *zip, const char *name)
{
    size_t low = 0, high = zip->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(zip->members[zip->by_name[middle]].name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == zip->count || strcmp(zip->members[zip->by_name[low]].name, name) != 0)
        return NULL;
    return &zip->members[zip->by_name[low]];
}

/* --- the bytes ------------------------------------------------------------------------------------------ */

/* ISA-L counts in 32 bits: longer members go through it in steps. */
static uint32_t step_of(uint64_t left)
{
    return left < (UINT32_C(1) << 30) ? (uint32_t)left : UINT32_C(1) << 30;
}

static tdbg_status inflate_member(const struct td_zip *zip, const struct td_zip_member *m, uint8_t *out,
                                  struct tdbg_error *error)
{
    struct inflate_state *state = malloc(sizeof *state);
    if (!state)
        return td_fail_nomem(error);
    isal_inflate_init(state);
    const uint8_t *in_end = zip->data + m->offset + m->packed;
    uint8_t spare, *out_end = out + m->size;
    state->next_in = (uint8_t *)(uintptr_t)(zip->data + m->offset);
    state->next_out = out;
    uint32_t crc = 0;
    int code = ISAL_DECOMP_OK;
    bool full = false;
    while (code == ISAL_DECOMP_OK && state->block_state != ISAL_BLOCK_FINISH) {
        full = state->next_out == out_end; /* one byte more tells a stream that ends from one that goes on */
        uint8_t *from = full ? &spare : state->next_out;
        const uint8_t *in_from = state->next_in;
        state->next_out = from;
        state->avail_out = full ? 1 : step_of((uint64_t)(out_end - from));
        state->avail_in = step_of((uint64_t)(in_end - in_from));
        code = isal_inflate(state);
        size_t made = (size_t)(state->next_out - from);
        if (full && made > 0)
            code = ISAL_OUT_OVERFLOW;
        else if (full)
            state->next_out = out_end;
        else
            crc = crc32_gzip_refl(crc, from, made);
        if (made == 0 && state->next_in == in_from && state->block_state != ISAL_BLOCK_FINISH)
            break; /* wants more than there is */
    }
    bool finished = code == ISAL_DECOMP_OK && state->block_state == ISAL_BLOCK_FINISH;
    bool whole = finished && state->next_out == out_end;
    free(state);
    if (!finished)
        return td_fail_at(error, TDBG_CORRUPT, m->offset, "zip: %s",
                          code == ISAL_OUT_OVERFLOW ? "the member unpacks to more than its size"
                          : code == ISAL_DECOMP_OK  ? "the member's deflate stream is cut short"
                                                    : "the member's deflate stream is damaged");
    if (!whole)
        return td_fail_at(error, TDBG_CORRUPT, m->offset, "zip: the member unpacks to less than its size");
    if (crc != m->crc)
        return td_fail_at(error, TDBG_CORRUPT, m->offset, "zip: the member's CRC is wrong");
    return TDBG_OK;
}

static bool claims_too_much(const struct td_zip_member *m)
{
    return m->size > RATIO_FREE && (m->size - RATIO_FREE) / TD_MAX_INFLATE_RATIO > m->packed;
}

bool td_zip_can_inflate(const struct td_zip_member *m)
{
    return !m->defect && m->method == DEFLATED && !claims_too_much(m);
}

tdbg_status td_zip_read(const struct td_zip *zip, const struct td_zip_member *m, struct td_bundle *scratch,
                        const uint8_t **data, struct tdbg_error *error)
{
    if (m->defect) {
        bool foreign = m->encrypted || (m->method != STORED && m->method != DEFLATED);
        return td_fail(error, foreign ? TDBG_UNSUPPORTED : TDBG_CORRUPT, "zip: %s", m->defect);
    }
    if (m->method == STORED) {
        *data = zip->data + m->offset;
        return TDBG_OK;
    }
    if (claims_too_much(m))
        return td_fail_at(error, TDBG_LIMIT, m->offset,
                          "zip: claims %" PRIu64 " bytes from %" PRIu64 ", more than deflate can hold",
                          m->size, m->packed);
    void *out;
    TD_TRY(td_bundle_scratch(scratch, m->size, &out, error));
    TD_TRY(inflate_member(zip, m, out, error));
    *data = out;
    return TDBG_OK;
}
