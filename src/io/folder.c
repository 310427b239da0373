/* folder.c: the files under a folder, as members of a bundle.
 *
 * fts(3) walks: it keeps the path, sorts each folder, follows links and notices the ones that lead back up.
 * Nothing is opened here, so a FIFO cannot block and a thousand files cost a thousand stat calls. What is no
 * readable regular file becomes a member with a reason; hidden files are left out silently. Links may make
 * the same folder appear many times over: the count of everything visited is capped, not only of files. A
 * folder out of bounds is not even listed.
 */
#include "base/limits.h"
#include "base/utf8.h"
#include "io/bundle.h"
#include "io/path.h"

#include <errno.h>
#include <fts.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int compare_entries(const FTSENT **a, const FTSENT **b)
{
    return td_path_compare((*a)->fts_name, (*b)->fts_name);
}

static const char *kind_of(mode_t mode)
{
    if (S_ISFIFO(mode))
        return "a FIFO, not a file";
    if (S_ISSOCK(mode))
        return "a socket, not a file";
    if (S_ISCHR(mode) || S_ISBLK(mode))
        return "a device, not a file";
    return "not a regular file";
}

/* Why the entry is no member to open, or NULL for a regular file. */
static const char *defect_of(const FTSENT *entry, char *text, size_t room)
{
    switch (entry->fts_info) {
    case FTS_F:
        return NULL;
    case FTS_DC:
        return "a link back to a folder it is in";
    case FTS_SL:
    case FTS_SLNONE:
        return "a link to nothing";
    case FTS_D:
        return "nested too deep";
    case FTS_DNR:
    case FTS_ERR:
    case FTS_NS:
        return strerror_r(entry->fts_errno, text, room);
    default:
        return kind_of(entry->fts_statp->st_mode);
    }
}

/* A folder that is a link may lead anywhere. */
static bool is_out_of_bounds(const struct td_bundle *bundle, const FTSENT *entry, struct tdbg_error *why)
{
    char *real = NULL;
    bool out = bundle->bound && entry->fts_info == FTS_D && entry->fts_level > 0 &&
               td_bundle_resolve(bundle, entry->fts_path, &real, why) != TDBG_OK;
    free(real);
    return out;
}

/* `reason`: why it is not to be looked at; NULL: what it is tells. */
static tdbg_status add_entry(struct td_bundle *bundle, const FTSENT *entry, const char *reason, size_t prefix,
                             struct tdbg_error *error)
{
    const char *relative = entry->fts_path + prefix;
    relative += *relative == '/';
    char *name = td_arena_strdup(&bundle->arena, relative), text[128];
    if (!name)
        return td_fail_nomem(error);
    td_utf8_clean(name);
    const char *defect = reason ? reason : defect_of(entry, text, sizeof text);
    if (defect)
        return td_bundle_add_bad(bundle, name, TDBG_IO, defect, error);
    const char *path = td_arena_strdup(&bundle->arena, entry->fts_path);
    if (!path)
        return td_fail_nomem(error);
    const struct timespec *written = &entry->fts_statp->st_mtim;
    struct td_member member = {.name = name, .kind = TD_MEMBER_FILE, .path = path};
    if (written->tv_sec > 0 && written->tv_sec < INT64_MAX / 1000000000)
        member.written = (int64_t)written->tv_sec * 1000000000 + written->tv_nsec;
    return td_bundle_add(bundle, member, error);
}

static tdbg_status walk(struct td_bundle *bundle, FTS *tree, size_t prefix, struct td_job *job,
                        struct tdbg_error *error)
{
    uint64_t visited = 0;
    FTSENT *entry;
    while (errno = 0, (entry = fts_read(tree))) {
        if (td_job_cancelled(job))
            return td_fail(error, TDBG_CANCELLED, "cancelled");
        if (++visited > TD_MAX_MEMBERS)
            return td_fail(error, TDBG_LIMIT, "more than %" PRIu64 " files", (uint64_t)TD_MAX_MEMBERS);
        if (entry->fts_level > 0 && td_path_hidden(entry->fts_name)) {
            fts_set(tree, entry, FTS_SKIP);
            continue;
        }
        struct tdbg_error why;
        bool out = is_out_of_bounds(bundle, entry, &why);
        bool fits = entry->fts_info == FTS_D && entry->fts_level < TD_MAX_FOLDER_DEPTH;
        if (entry->fts_info == FTS_DP || (fits && !out))
            continue;
        if (entry->fts_level == 0) { /* the folder itself cannot be read */
            errno = entry->fts_errno;
            return td_fail_errno(error, "cannot open");
        }
        if (entry->fts_info == FTS_D)
            fts_set(tree, entry, FTS_SKIP);
        TD_TRY(add_entry(bundle, entry, out ? why.message : NULL, prefix, error));
    }
    return errno ? td_fail_errno(error, "cannot list") : TDBG_OK;
}

tdbg_status td_folder_list(struct td_bundle *bundle, const char *path, struct td_job *job,
                           struct tdbg_error *error)
{
    char *root = td_arena_strdup(&bundle->arena, path);
    if (!root)
        return td_fail_nomem(error);
    size_t length = strlen(root);
    while (length > 1 && root[length - 1] == '/')
        root[--length] = 0;
    char *roots[] = {root, NULL};
    FTS *tree = fts_open(roots, FTS_LOGICAL | FTS_NOCHDIR, compare_entries);
    if (!tree)
        return td_fail_errno(error, "cannot open");
    tdbg_status status = walk(bundle, tree, length, job, error);
    fts_close(tree);
    return status;
}
