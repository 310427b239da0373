/* source.c: opening bundles and their members; see source.h and bundle.h. */
#include "io/source.h"

#include "base/limits.h"
#include "base/utf8.h"
#include "io/bundle.h"
#include "io/path.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* --- filling -------------------------------------------------------------------------------------------- */

tdbg_status td_bundle_make(struct td_bundle **out, struct td_bundle *within, struct tdbg_error *error)
{
    struct td_bundle *bundle = calloc(1, sizeof *bundle);
    if (!bundle)
        return td_fail_nomem(error);
    td_arena_init(&bundle->arena, TD_MAX_METADATA);
    td_budget_init(&bundle->budget);
    td_spill_init(&bundle->spill, within ? within->spill.budget : &bundle->budget);
    *out = bundle;
    return TDBG_OK;
}

tdbg_status td_bundle_add(struct td_bundle *bundle, struct td_member member, struct tdbg_error *error)
{
    if (bundle->count == bundle->capacity) {
        if (bundle->count >= TD_MAX_MEMBERS)
            return td_fail(error, TDBG_LIMIT, "more than %" PRIu64 " members", (uint64_t)TD_MAX_MEMBERS);
        size_t capacity = bundle->capacity ? bundle->capacity * 2 : 16;
        struct td_member *members = realloc(bundle->members, capacity * sizeof *members);
        if (!members)
            return td_fail_nomem(error);
        bundle->members = members;
        bundle->capacity = capacity;
    }
    bundle->members[bundle->count++] = member;
    return TDBG_OK;
}

tdbg_status td_bundle_add_bad(struct td_bundle *bundle, const char *name, tdbg_status status,
                              const char *reason, struct tdbg_error *error)
{
    const char *copy = td_arena_strdup(&bundle->arena, reason);
    if (!copy)
        return td_fail_nomem(error);
    struct td_member member = {.name = name, .kind = TD_MEMBER_BAD, .status = status, .reason = copy};
    return td_bundle_add(bundle, member, error);
}

static int compare_names(const void *a, const void *b, void *context)
{
    const struct td_member *members = context;
    uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
    int order = strcmp(members[i].name, members[j].name);
    return order ? order : i < j ? -1 : i > j;
}

tdbg_status td_bundle_sort(struct td_bundle *bundle, struct tdbg_error *error)
{
    if (bundle->by_name)
        return TDBG_OK;
    uint32_t *by_name = malloc((bundle->count + 1) * sizeof *by_name);
    if (!by_name)
        return td_fail_nomem(error);
    for (size_t i = 0; i < bundle->count; i++)
        by_name[i] = (uint32_t)i;
    qsort_r(by_name, bundle->count, sizeof *by_name, compare_names, bundle->members);
    bundle->by_name = by_name;
    return TDBG_OK;
}

struct td_member *td_bundle_find(const struct td_bundle *bundle, const char *name)
{
    size_t low = 0, high = bundle->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(bundle->members[bundle->by_name[middle]].name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    struct td_member *found = NULL;
    for (; low < bundle->count && (!found || found->kind == TD_MEMBER_BAD); low++) {
        struct td_member *next = &bundle->members[bundle->by_name[low]];
        if (strcmp(next->name, name) != 0)
            break;
        found = next;
    }
    return found;
}

/* --- staying within bounds ------------------------------------------------------------------------------ */

static tdbg_status set_bound(struct td_bundle *bundle, const char *path, bool is_folder, struct td_job *job,
                             struct tdbg_error *error)
{
    if (!job || !job->bound)
        return TDBG_OK;
    char *real = realpath(path, NULL);
    if (!real)
        return td_fail_errno(error, "cannot open");
    char *top = td_arena_strdup(&bundle->arena, real), *base = td_arena_strdup(&bundle->arena, real);
    free(real);
    if (!top || !base)
        return td_fail_nomem(error);
    char *slash = strrchr(base, '/');
    if (!is_folder)
        slash[slash == base] = 0; /* "/x" lies in "/" */
    bundle->bound = job->bound;
    bundle->top = top;
    bundle->base = base;
    return TDBG_OK;
}

tdbg_status td_bundle_resolve(const struct td_bundle *bundle, const char *path, char **out,
                              struct tdbg_error *error)
{
    char *real = realpath(path, NULL);
    if (!real)
        return td_fail_errno(error, "cannot open");
    if (bundle->bound && !td_path_is_under(bundle->base, real) &&
        !bundle->bound->holds(bundle->bound->context, bundle->top, real)) {
        free(real);
        return td_fail(error, TDBG_UNSUPPORTED, "leads out of the folders this server may open");
    }
    *out = real;
    return TDBG_OK;
}

static tdbg_status map_file(const struct td_bundle *bundle, const char *path, struct td_map *out,
                            struct tdbg_error *error)
{
    char *real = NULL;
    if (!bundle->bound)
        return td_map_open(out, path, error);
    TD_TRY(td_bundle_resolve(bundle, path, &real, error));
    tdbg_status status = td_map_open(out, real, error);
    free(real);
    return status;
}

/* --- opening bundles ------------------------------------------------------------------------------------ */

static tdbg_status add_plain(struct td_bundle *bundle, const char *path, struct tdbg_error *error)
{
    bundle->is_plain = true;
    bundle->plain = td_arena_strdup(&bundle->arena, path);
    char *name = td_arena_strdup(&bundle->arena, td_path_base(path));
    if (!bundle->plain || !name)
        return td_fail_nomem(error);
    td_utf8_clean(name);
    struct td_member member = {.name = name, .kind = TD_MEMBER_FILE, .path = bundle->plain};
    TD_TRY(td_bundle_add(bundle, member, error));
    const struct td_source *source; /* a path that cannot be opened is an error now, not later */
    return td_bundle_source(bundle, 0, &source, error);
}

tdbg_status td_bundle_open(struct td_bundle **out, const char *path, struct td_job *job,
                           struct tdbg_error *error)
{
    struct stat info;
    if (stat(path, &info) != 0)
        return td_fail_errno(error, "cannot open");
    struct td_bundle *bundle = NULL;
    TD_TRY(td_bundle_make(&bundle, NULL, error));
    bool is_folder = S_ISDIR(info.st_mode);
    tdbg_status status = set_bound(bundle, path, is_folder, job, error);
    if (status == TDBG_OK)
        status = is_folder ? td_folder_list(bundle, path, job, error) : add_plain(bundle, path, error);
    if (status == TDBG_OK)
        *out = bundle;
    else
        td_bundle_close(&bundle);
    return status;
}

tdbg_status td_bundle_open_memory(struct td_bundle **out, const char *name, const void *data, size_t size,
                                  struct tdbg_error *error)
{
    struct td_bundle *bundle = NULL;
    TD_TRY(td_bundle_make(&bundle, NULL, error));
    bundle->is_plain = true;
    struct td_member member = {.kind = TD_MEMBER_BYTES, .data = data, .size = size};
    member.name = td_path_clean(&bundle->arena, name, strlen(name));
    tdbg_status status = member.name ? td_bundle_add(bundle, member, error) : td_fail_nomem(error);
    if (status == TDBG_OK)
        *out = bundle;
    else
        td_bundle_close(&bundle);
    return status;
}

void td_bundle_close(struct td_bundle **bundle)
{
    struct td_bundle *b = *bundle;
    if (!b)
        return;
    for (struct td_opened *o = b->opened; o; o = o->next)
        td_map_close(&o->map);
    td_zip_release(&b->zip);
    td_spill_release(&b->spill);
    td_arena_release(&b->arena);
    free(b->by_name);
    free(b->members);
    free(b);
    *bundle = NULL;
}

bool td_bundle_is_plain_file(const struct td_bundle *bundle)
{
    return bundle->is_plain;
}

size_t td_bundle_count(const struct td_bundle *bundle)
{
    return bundle->count;
}

const char *td_bundle_name(const struct td_bundle *bundle, size_t index)
{
    return bundle->members[index].name;
}

tdbg_status td_bundle_scratch(struct td_bundle *bundle, size_t size, void **out, struct tdbg_error *error)
{
    return td_spill_alloc(&bundle->spill, size, out, error);
}

/* --- opening members ------------------------------------------------------------------------------------ */

static tdbg_status fetch(struct td_bundle *bundle, const struct td_member *member, struct td_opened *opened,
                         struct tdbg_error *error)
{
    switch (member->kind) {
    case TD_MEMBER_FILE:
        TD_TRY(map_file(bundle, member->path, &opened->map, error));
        opened->path = member->path;
        opened->source.data = opened->map.data;
        opened->source.size = opened->map.size;
        return TDBG_OK;
    case TD_MEMBER_BYTES:
        opened->source.data = member->data;
        opened->source.size = member->size;
        return TDBG_OK;
    case TD_MEMBER_ZIPPED:
        opened->source.size = member->zipped->size;
        return td_zip_read(&bundle->zip, member->zipped, bundle, &opened->source.data, error);
    case TD_MEMBER_LINK:
    case TD_MEMBER_BAD:
        break;
    }
    return td_fail(error, member->status, "%s", member->reason);
}

static tdbg_status open_member(struct td_bundle *bundle, const struct td_member *member,
                               const struct td_source **out, struct tdbg_error *error)
{
    struct td_opened *opened = td_arena_alloc(&bundle->arena, sizeof *opened);
    if (!opened)
        return td_fail_nomem(error);
    opened->source.name = member->name;
    opened->source.bundle = bundle;
    opened->source.written = member->written;
    TD_TRY(fetch(bundle, member, opened, error));
    if (!opened->source.data)
        opened->source.data =
            (const uint8_t *)""; /* an empty file has no mapping, but has an end to point at */
    opened->next = bundle->opened;
    bundle->opened = opened;
    *out = &opened->source;
    return TDBG_OK;
}

tdbg_status td_bundle_source(struct td_bundle *bundle, size_t index, const struct td_source **out,
                             struct tdbg_error *error)
{
    struct td_member *member = &bundle->members[index];
    if (!member->source)
        TD_TRY(open_member(bundle, member, &member->source, error));
    *out = member->source;
    return TDBG_OK;
}

/* --- siblings ------------------------------------------------------------------------------------------- */

/* Beside a plain file: other files of its folder on disk, which are no members. */
static tdbg_status open_beside(struct td_bundle *bundle, const char *name, const struct td_source **out,
                               struct tdbg_error *error)
{
    const char *path = td_path_beside(&bundle->arena, bundle->plain, name);
    if (!path)
        return td_fail_nomem(error);
    for (struct td_opened *o = bundle->opened; o; o = o->next)
        if (o->path && strcmp(o->path, path) == 0) {
            *out = &o->source;
            return TDBG_OK;
        }
    char *shown = td_arena_strdup(&bundle->arena, name);
    if (!shown)
        return td_fail_nomem(error);
    td_utf8_clean(shown);
    struct td_member member = {.name = shown, .kind = TD_MEMBER_FILE, .path = path};
    return open_member(bundle, &member, out, error);
}

tdbg_status td_source_sibling(const struct td_source *source, const char *name, const struct td_source **out,
                              struct tdbg_error *error)
{
    struct td_bundle *bundle = source->bundle;
    if (!td_path_is_inner(name))
        return td_fail(error, TDBG_UNSUPPORTED, "refers to a file outside its folder");
    if (bundle->plain)
        return open_beside(bundle, name, out, error);
    TD_TRY(td_bundle_sort(bundle, error));
    const char *wanted = td_path_beside(&bundle->arena, source->name, name);
    if (!wanted)
        return td_fail_nomem(error);
    const struct td_member *found = td_bundle_find(bundle, wanted);
    if (!found)
        return td_fail(error, TDBG_NOTFOUND, "not there");
    return td_bundle_source(bundle, (size_t)(found - bundle->members), out, error);
}
