/* run_folders.c: see run_folders.h. Ranks that never wrote anything have no folder, or one without an index:
 * they are left out. */
#include "store/run_folders.h"

#include "store/run_store.h"

#include <dirent.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char prefix[] = "rank-";

static int is_rank(const struct dirent *entry)
{
    return strncmp(entry->d_name, prefix, sizeof prefix - 1) == 0;
}

static tdbg_status add(struct td_run_folders *f, const char *dir, const char *name, struct tdbg_error *error)
{
    char *path = NULL;
    if (asprintf(&path, "%s%s%s", dir, *name ? "/" : "", name) < 0)
        return td_fail_nomem(error);
    if (td_run_is(path))
        f->paths[f->count++] = path;
    else
        free(path);
    return TDBG_OK;
}

static tdbg_status add_ranks(struct td_run_folders *f, const char *dir, struct dirent **entries, size_t count,
                             struct tdbg_error *error)
{
    f->paths = calloc(count + 1, sizeof *f->paths);
    if (!f->paths)
        return td_fail_nomem(error);
    for (size_t i = 0; i < count; i++)
        TD_TRY(add(f, dir, entries[i]->d_name, error));
    return f->count ? TDBG_OK : add(f, dir, "", error);
}

tdbg_status td_run_folders_init(struct td_run_folders *out, const char *dir, struct tdbg_error *error)
{
    struct td_run_folders folders = {0};
    struct dirent **entries = NULL;
    int count = scandir(dir, &entries, is_rank, versionsort);
    tdbg_status status = add_ranks(&folders, dir, entries, count > 0 ? (size_t)count : 0, error);
    for (int i = 0; i < count; i++)
        free(entries[i]);
    free(entries);
    if (status == TDBG_OK)
        *out = folders;
    else
        td_run_folders_release(&folders);
    return status;
}

void td_run_folders_release(struct td_run_folders *f)
{
    for (size_t i = 0; i < f->count; i++)
        free(f->paths[i]);
    free(f->paths);
    *f = (struct td_run_folders){0};
}

bool td_run_is_values(const char *name)
{
    return fnmatch("step-[-0-9]*.safetensors", name, 0) == 0;
}

bool td_run_owns(const char *name)
{
    static const char *const patterns[] = {TD_RUN_INDEX, TD_RUN_INDEX "-*", "step-[-0-9]*.safetensors.part",
                                           TD_RUN_CONTROL};
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++)
        if (fnmatch(patterns[i], name, 0) == 0)
            return true;
    return td_run_is_values(name);
}
