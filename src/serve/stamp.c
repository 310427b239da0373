/* stamp.c: see stamp.h. */
#include "serve/stamp.h"

#include "base/limits.h"
#include "session/target.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int64_t nanoseconds(const struct timespec *t)
{
    return (int64_t)t->tv_sec * 1000000000 + t->tv_nsec;
}

struct census {
    uint64_t count, digest;
};

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

/* Sums do not depend on the order in which a folder gives its entries. */
static void count_entry(struct census *c, uint64_t parent, const char *name, const struct stat *st)
{
    uint64_t hash = parent;
    for (; *name; name++)
        hash = mix(hash, (unsigned char)*name);
    hash = mix(hash, (uint64_t)st->st_ino);
    if (!S_ISDIR(st->st_mode)) {
        hash = mix(hash, (uint64_t)st->st_size);
        hash = mix(hash, (uint64_t)nanoseconds(&st->st_mtim));
    }
    c->digest += hash;
    c->count++;
}

static void walk(struct census *c, int folder, uint64_t parent, int depth)
{
    DIR *dir = fdopendir(folder);
    if (!dir) {
        close(folder);
        return;
    }
    for (struct dirent *e; c->count < TD_MAX_MEMBERS && (e = readdir(dir));) {
        struct stat st;
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
            fstatat(dirfd(dir), e->d_name, &st, 0) != 0)
            continue;
        count_entry(c, parent, e->d_name, &st);
        if (!S_ISDIR(st.st_mode) || depth == 0)
            continue;
        int inner = openat(dirfd(dir), e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (inner >= 0)
            walk(c, inner, mix(parent, (uint64_t)st.st_ino), depth - 1);
    }
    closedir(dir);
}

static void stamp_folder(char *out, const char *path)
{
    struct census c = {0};
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return;
    walk(&c, folder, 0, TD_MAX_FOLDER_DEPTH);
    snprintf(out, TD_STAMP_SIZE, "d:%" PRIu64 ":%016" PRIx64, c.count, c.digest);
}

void td_stamp_take(char out[TD_STAMP_SIZE], const char *text)
{
    struct td_target target;
    struct stat st;
    out[0] = 0;
    if (td_target_init(&target, text, NULL) != TDBG_OK)
        return;
    if (stat(target.path, &st) != 0)
        ; /* gone: no stamp */
    else if (S_ISDIR(st.st_mode))
        stamp_folder(out, target.path);
    else
        snprintf(out, TD_STAMP_SIZE, "f:%" PRId64 ":%" PRId64 ":%" PRIu64, (int64_t)st.st_size,
                 nanoseconds(&st.st_mtim), (uint64_t)st.st_ino);
    td_target_release(&target);
}
