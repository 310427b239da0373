/* zip.c: listing a zip with minizip, reading its members with ISA-L.
 *
 *     local header | name | extra | data      one per member; minizip checks it against the directory
 *     ...
 *     central directory                       what minizip walks: names, sizes, offsets
 *     [zip64 end record, locator] end record  found from the end of the file
 *
 * minizip reads through callbacks over the mapped bytes, so it costs no system calls and cannot read past
 * them. What it reports are claims: every data range is checked against the file here, and ranges that
 * overlap are refused, for that is how a small zip unpacks to petabytes.
 */
#include "io/zip.h"

#include "base/checked.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "io/path.h"

#include <inttypes.h>
#include <isa-l/crc.h>
#include <isa-l/igzip_lib.h>
#include <minizip/unzip.h>
#include <stdlib.h>
#include <string.h>

enum { STORED = 0, DEFLATED = 8, FLAG_ENCRYPTED = 1 };

/* What a packed member may claim beyond the ratio: an empty deflate block is two bytes. */
#define RATIO_FREE 65536

/* --- minizip over memory -------------------------------------------------------------------------------- */

struct memory {
    const uint8_t *data;
    uint64_t size, at;
    bool past_end; /* minizip takes a short read for zeros unless told that it was an error */
};

static voidpf memory_open(voidpf opaque, const void *name, int mode)
{
    (void)name;
    (void)mode;
    return opaque;
}

static uLong memory_read(voidpf opaque, voidpf stream, void *out, uLong count)
{
    (void)opaque;
    struct memory *m = stream;
    uint64_t left = m->size - m->at;
    if (count > left) {
        count = left;
        m->past_end = true;
    }
    if (count)
        memcpy(out, m->data + m->at, count);
    m->at += count;
    return count;
}

static ZPOS64_T memory_tell(voidpf opaque, voidpf stream)
{
    (void)opaque;
    return ((struct memory *)stream)->at;
}

static long memory_seek(voidpf opaque, voidpf stream, ZPOS64_T offset, int origin)
{
    (void)opaque;
    struct memory *m = stream;
    uint64_t base = origin == ZLIB_FILEFUNC_SEEK_END ? m->size : origin == ZLIB_FILEFUNC_SEEK_CUR ? m->at : 0;
    uint64_t to;
    if (!td_add_u64(base, offset, &to) || to > m->size)
        return -1;
    m->at = to;
    return 0;
}

static int memory_close(voidpf opaque, voidpf stream)
{
    (void)opaque;
    (void)stream;
    return 0;
}

static int memory_error(voidpf opaque, voidpf stream)
{
    (void)opaque;
    return ((struct memory *)stream)->past_end;
}

static unzFile open_memory(struct memory *memory)
{
    zlib_filefunc64_def functions = {
        .zopen64_file = memory_open,
        .zread_file = memory_read,
        .ztell64_file = memory_tell,
        .zseek64_file = memory_seek,
        .zclose_file = memory_close,
        .zerror_file = memory_error,
        .opaque = memory,
    };
    return unzOpen2_64("", &functions);
}

/* --- the directory -------------------------------------------------------------------------------------- */

bool td_zip_probe(const uint8_t *data, size_t size)
{
    return size >= 22 && (memcmp(data, "PK\3\4", 4) == 0 || memcmp(data, "PK\5\6", 4) == 0);
}

/* An end record and nothing else, as np.savez without arrays writes; minizip takes a record at byte 0 for
 * none. */
static bool is_empty(const uint8_t *data, size_t size)
{
    return size >= 22 && memcmp(data, "PK\5\6", 4) == 0 && data[10] == 0 && data[11] == 0;
}

static const char *find_defect(const struct td_zip *zip, const struct td_zip_member *m, int opened)
{
    if (m->encrypted)
        return "encrypted";
    if (m->method != STORED && m->method != DEFLATED)
        return "packed by a method tdbg does not read (neither stored nor deflated)";
    if (opened != UNZ_OK)
        return "its local header contradicts the directory";
    if (!td_range_within(m->offset, m->packed, zip->size))
        return "its data lies beyond the end of the file";
    if (m->method == STORED && m->packed != m->size)
        return "stored, yet of two sizes";
    return NULL;
}

static tdbg_status read_member(struct td_zip *zip, unzFile file, char *name, size_t room,
                               struct td_zip_member *out, struct tdbg_error *error)
{
    unz_file_info64 info;
    if (unzGetCurrentFileInfo64(file, &info, name, room, NULL, 0, NULL, 0) != UNZ_OK)
        return td_fail(error, TDBG_CORRUPT, "zip: the directory is damaged after %zu members", zip->count);
    size_t length = info.size_filename < room ? info.size_filename : room - 1;
    for (size_t i = 0; i < length; i++)
        if (name[i] == 0)
            name[i] = '?';
    name[length] = 0;
    td_utf8_clean(name);
    struct td_zip_member member = {
        .packed = info.compressed_size,
        .size = info.uncompressed_size,
        .crc = (uint32_t)info.crc,
        .method = (uint16_t)info.compression_method,
        .encrypted = info.flag & FLAG_ENCRYPTED,
    };
    int method, opened = unzOpenCurrentFile2(file, &method, NULL, 1);
    if (opened == UNZ_OK) {
        member.offset = unzGetCurrentFileZStreamPos64(file);
        unzCloseCurrentFile(file);
    }
    member.defect = find_defect(zip, &member, opened);
    member.name = td_arena_strndup(&zip->arena, name, length);
    if (!member.name)
        return td_fail_nomem(error);
    *out = member;
    return TDBG_OK;
}

/* Room for one more, doubling within the arena's cap. */
static tdbg_status reserve(struct td_zip *zip, size_t *capacity, struct tdbg_error *error)
{
    if (zip->count < *capacity)
        return TDBG_OK;
    if (zip->count >= TD_MAX_MEMBERS)
        return td_fail(error, TDBG_LIMIT, "zip: more than %" PRIu64 " members", (uint64_t)TD_MAX_MEMBERS);
    size_t grown = *capacity ? *capacity * 2 : 64;
    struct td_zip_member *members = realloc(zip->members, grown * sizeof *members);
    if (!members)
        return td_fail_nomem(error);
    zip->members = members;
    *capacity = grown;
    return TDBG_OK;
}

static tdbg_status read_members(struct td_zip *zip, unzFile file, struct tdbg_error *error)
{
    char *name = malloc(UINT16_MAX + 1);
    if (!name)
        return td_fail_nomem(error);
    size_t capacity = 0;
    tdbg_status status = TDBG_OK;
    unz_global_info64 global;
    int step = unzGetGlobalInfo64(file, &global);
    if (step == UNZ_OK)
        step = global.number_entry ? unzGoToFirstFile(file) : UNZ_END_OF_LIST_OF_FILE;
    for (; step == UNZ_OK; step = unzGoToNextFile(file)) {
        status = reserve(zip, &capacity, error);
        if (status == TDBG_OK)
            status = read_member(zip, file, name, UINT16_MAX + 1, &zip->members[zip->count], error);
        if (status != TDBG_OK)
            break;
        size_t length = strlen(name);
        bool folder = length > 0 && name[length - 1] == '/' && zip->members[zip->count].size == 0;
        zip->count += !folder;
    }
    free(name);
    if (status == TDBG_OK && step != UNZ_END_OF_LIST_OF_FILE)
        status = td_fail(error, TDBG_CORRUPT, "zip: the directory is damaged after %zu members", zip->count);
    return status;
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
    struct memory memory = {.data = data, .size = size};
    if (is_empty(data, size)) {
        td_arena_init(&zip.arena, TD_MAX_METADATA);
        *out = zip;
        return TDBG_OK;
    }
    unzFile file = open_memory(&memory);
    if (!file)
        return td_fail(error, TDBG_CORRUPT, "zip: no directory at the end: cut short or not a zip");
    td_arena_init(&zip.arena, TD_MAX_METADATA);
    tdbg_status status = read_members(&zip, file, error);
    unzClose(file);
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
    if (m->size > RATIO_FREE && (m->size - RATIO_FREE) / TD_MAX_INFLATE_RATIO > m->packed)
        return td_fail_at(error, TDBG_LIMIT, m->offset,
                          "zip: claims %" PRIu64 " bytes from %" PRIu64 ", more than deflate can hold",
                          m->size, m->packed);
    void *out;
    TD_TRY(td_bundle_scratch(scratch, m->size, &out, error));
    TD_TRY(inflate_member(zip, m, out, error));
    *data = out;
    return TDBG_OK;
}
