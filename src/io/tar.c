/* tar.c: the members of a tar in memory, in place.
 *
 *     header block (512 bytes: name, size, kind, checksum ...) | data, padded to 512 | ... | two zero blocks
 *
 * libarchive knows the dialects (ustar, pax, GNU, v7; long names, sparse files). It is given all bytes as one
 * buffer and hands out pointers into it, so that listing touches headers only and a member's data is where it
 * always was. A sparse file is the exception: its pieces are put together in the spill.
 *
 * Names may come twice (tar appends): the last one counts, as it would on disk. Links to other members of
 * the archive are followed once all names are known; links to anything else are members with a reason.
 */
#include "base/limits.h"
#include "io/archive_library.h"
#include "io/bundle.h"
#include "io/path.h"
#include "io/tar.h"

#include <stdlib.h>
#include <string.h>

enum { BLOCK = 512 };

bool td_tar_probe(const uint8_t *data, size_t size)
{
    if (size < BLOCK || data[0] == 0)
        return false;
    /* The checksum: octal digits at 148, the sum of all bytes with its own field taken as spaces. */
    unsigned long sum = 0;
    char field[9] = {0};
    for (size_t i = 0; i < BLOCK; i++)
        sum += i >= 148 && i < 156 ? ' ' : data[i];
    memcpy(field, data + 148, 8);
    char *end;
    unsigned long claimed = strtoul(field, &end, 8);
    return end != field && claimed == sum;
}

struct tar {
    struct td_bundle *bundle;
    const uint8_t *data;
    size_t size;
    struct archive *archive;
    struct archive_entry *entry;
};

static tdbg_status fail_archive(struct tar *tar, struct tdbg_error *error)
{
    const char *text = td_la.error_string(tar->archive);
    return td_fail(error, TDBG_CORRUPT, "tar: %s", text ? text : "damaged");
}

/* Puts the pieces of a sparse file together. `piece` is the first of them. */
static tdbg_status gather(struct tar *tar, const void *piece, size_t size, la_int64_t offset, uint64_t whole,
                          struct td_member *member, struct tdbg_error *error)
{
    struct td_spill_stream stream;
    TD_TRY(td_spill_stream_open(&stream, &tar->bundle->spill, error));
    tdbg_status status = TDBG_OK;
    int code = ARCHIVE_OK;
    while (code == ARCHIVE_OK && status == TDBG_OK) {
        if (offset < 0 || (uint64_t)offset < stream.size || (uint64_t)offset > whole ||
            size > whole - (uint64_t)offset)
            status = td_fail(error, TDBG_CORRUPT, "tar: the pieces of a sparse file do not fit");
        if (status == TDBG_OK)
            status = td_spill_stream_pad(&stream, (uint64_t)offset, error);
        if (status == TDBG_OK && size > 0)
            status = td_spill_stream_write(&stream, piece, size, error);
        if (status == TDBG_OK)
            code = td_la.read_data_block(tar->archive, &piece, &size, &offset);
    }
    if (status == TDBG_OK && code != ARCHIVE_EOF)
        status = fail_archive(tar, error);
    if (status == TDBG_OK)
        status = td_spill_stream_pad(&stream, whole, error);
    if (status == TDBG_OK)
        status = td_spill_stream_map(&stream, &member->data, &member->size, error);
    td_spill_stream_close(&stream);
    return status;
}

/* Where the current entry's data is. */
static tdbg_status locate(struct tar *tar, struct td_member *member, struct tdbg_error *error)
{
    uint64_t whole = (uint64_t)td_la.entry_size(tar->entry);
    const void *piece = NULL;
    size_t size = 0;
    la_int64_t offset = 0;
    member->kind = TD_MEMBER_BYTES;
    int code = whole ? td_la.read_data_block(tar->archive, &piece, &size, &offset) : ARCHIVE_EOF;
    if (code == ARCHIVE_EOF && whole == 0)
        return TDBG_OK;
    if (code != ARCHIVE_OK && code != ARCHIVE_EOF)
        return fail_archive(tar, error);
    uintptr_t at = (uintptr_t)piece - (uintptr_t)tar->data;
    bool inside = code == ARCHIVE_OK && at <= tar->size && size <= tar->size - at;
    if (inside && offset == 0 && size == whole) {
        member->data = tar->data + at;
        member->size = size;
        return TDBG_OK;
    }
    if (inside && offset == 0 && at + size == tar->size)
        return td_fail(error, TDBG_CORRUPT, "tar: cut short in the middle of this file");
    if (code == ARCHIVE_EOF) /* nothing but a hole */
        offset = 0, size = 0;
    return gather(tar, piece, size, offset, whole, member, error);
}

/* The name a link points to, as members are named; NULL when it leaves the archive. */
static const char *link_target(struct tar *tar, const char *name, const char *hard, const char *soft)
{
    struct td_arena *arena = &tar->bundle->arena;
    if (hard)
        return td_path_clean(arena, hard, strlen(hard));
    return soft && td_path_is_inner(soft) ? td_path_beside(arena, name, soft) : NULL;
}

static tdbg_status add_entry(struct tar *tar, struct tdbg_error *error)
{
    struct archive_entry *entry = tar->entry;
    const char *given = td_la.entry_pathname(entry);
    if (!given)
        given = td_la.entry_pathname_utf8(entry);
    if (!given)
        given = "?";
    const char *hard = td_la.entry_hardlink(entry), *soft = td_la.entry_symlink(entry);
    if (!hard && !soft && td_la.entry_filetype(entry) == AE_IFDIR)
        return TDBG_OK;
    struct td_member member = {0};
    size_t length = strlen(given);
    member.name = td_path_clean(&tar->bundle->arena, given, length < TD_MAX_NAME ? length : TD_MAX_NAME);
    if (!member.name)
        return td_fail_nomem(error);
    if (td_path_hidden(member.name))
        return TDBG_OK;
    if (!td_path_is_inner(member.name))
        return td_bundle_add_bad(tar->bundle, member.name, TDBG_UNSUPPORTED, TD_LEADS_OUT, error);
    if (hard || soft) {
        member.kind = TD_MEMBER_LINK;
        member.target = link_target(tar, member.name, hard, soft);
        return td_bundle_add(tar->bundle, member, error);
    }
    if (td_la.entry_filetype(entry) != AE_IFREG)
        return td_bundle_add_bad(tar->bundle, member.name, TDBG_UNSUPPORTED, "not a regular file", error);
    struct tdbg_error reason;
    tdbg_status status = locate(tar, &member, &reason);
    if (status == TDBG_OK)
        return td_bundle_add(tar->bundle, member, error);
    if (status == TDBG_LIMIT || status == TDBG_IO || status == TDBG_NOMEM)
        return td_fail(error, status, "%s", reason.message);
    return td_bundle_add_bad(tar->bundle, member.name, status, reason.message, error);
}

static void spoil(struct td_member *member, const char *reason)
{
    member->kind = TD_MEMBER_BAD;
    member->status = TDBG_UNSUPPORTED;
    member->reason = reason;
}

/* Names that came twice, and links, once everything is listed. */
static tdbg_status settle(struct td_bundle *bundle, struct tdbg_error *error)
{
    TD_TRY(td_bundle_sort(bundle, error));
    for (size_t i = 0; i + 1 < bundle->count; i++) {
        struct td_member *member = &bundle->members[bundle->by_name[i]];
        if (strcmp(member->name, bundle->members[bundle->by_name[i + 1]].name) == 0)
            spoil(member, "replaced by a later member of the same name");
    }
    for (size_t i = 0; i < bundle->count; i++) {
        struct td_member *member = &bundle->members[i];
        if (member->kind != TD_MEMBER_LINK)
            continue;
        const struct td_member *target = member->target ? td_bundle_find(bundle, member->target) : NULL;
        if (target && target->kind == TD_MEMBER_BYTES) {
            member->kind = TD_MEMBER_BYTES;
            member->data = target->data;
            member->size = target->size;
        } else {
            spoil(member, "a link to something that is no file of the archive");
        }
    }
    return TDBG_OK;
}

/* libarchive takes the end of the bytes for the end of the archive; a whole tar has zero blocks there, and
 * they are what it looked at last. */
static bool has_end_mark(const struct tar *tar)
{
    return td_la.filter_bytes(tar->archive, 0) > td_la.read_header_position(tar->archive);
}

static tdbg_status list_entries(struct tar *tar, bool cut, struct td_job *job, struct tdbg_error *error)
{
    int code;
    while ((code = td_la.read_next_header(tar->archive, &tar->entry)) == ARCHIVE_OK || code == ARCHIVE_WARN) {
        if (td_job_cancelled(job))
            return td_fail(error, TDBG_CANCELLED, "cancelled");
        TD_TRY(add_entry(tar, error));
    }
    if (code == ARCHIVE_EOF && has_end_mark(tar) && !cut)
        return TDBG_OK;
    return td_bundle_add_bad(tar->bundle, "(end of archive)", TDBG_CORRUPT,
                             "the archive is cut short or damaged: what came after is missing", error);
}

tdbg_status td_tar_list(struct td_bundle *bundle, const uint8_t *data, size_t size, bool cut,
                        struct td_job *job, struct tdbg_error *error)
{
    TD_TRY(td_archive_library_load(error));
    struct tar tar = {.bundle = bundle, .data = data, .size = size, .archive = td_la.read_new()};
    if (!tar.archive)
        return td_fail_nomem(error);
    td_la.read_support_format_tar(tar.archive);
    tdbg_status status = TDBG_OK;
    if (td_la.read_open_memory(tar.archive, data, size) != ARCHIVE_OK)
        status = fail_archive(&tar, error);
    if (status == TDBG_OK)
        status = list_entries(&tar, cut, job, error);
    td_la.read_free(tar.archive);
    return status == TDBG_OK ? settle(bundle, error) : status;
}
