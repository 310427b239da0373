/* run_list.c: see run_list.h. A walk of limited depth and length: roots may be large. A folder that is a run
 * is not looked into, as nothing but its own files is there. */
#include "serve/run_list.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { DEEPEST = 5, MOST_LOOKED = 50000, MOST_RUNS = 500 };

static bool is_listed(const struct td_run_list *l, const char *path)
{
    for (size_t i = 0; i < l->count; i++)
        if (strcmp(l->runs[i].path, path) == 0)
            return true;
    return false;
}

static bool add_run(struct td_run_list *l, const char *path)
{
    struct td_run_store *store = NULL;
    struct td_listed_run run = {0};
    if (is_listed(l, path) || td_run_store_open(&store, path, NULL) != TDBG_OK)
        return true;
    tdbg_status status = td_run_facts(store, &run.facts, NULL);
    td_run_store_close(&store);
    if (status != TDBG_OK)
        return true;
    if (l->count == l->room) {
        size_t room = l->room ? 2 * l->room : 16;
        struct td_listed_run *grown = realloc(l->runs, room * sizeof *grown);
        if (!grown)
            return false;
        l->runs = grown;
        l->room = room;
    }
    run.path = strdup(path);
    if (run.path)
        l->runs[l->count++] = run;
    return run.path != NULL;
}

static bool is_folder(const char *path, const struct dirent *entry)
{
    struct stat st;
    if (entry->d_type != DT_UNKNOWN)
        return entry->d_type == DT_DIR;
    return lstat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static bool walk(struct td_run_list *l, const char *folder, int depth)
{
    if (td_run_is(folder))
        return add_run(l, folder);
    DIR *dir = depth < DEEPEST ? opendir(folder) : NULL;
    const struct dirent *entry;
    bool good = true;
    while (dir && good && (entry = readdir(dir))) {
        char path[PATH_MAX];
        if (++l->looked > MOST_LOOKED || l->count >= MOST_RUNS) {
            l->cut = true;
            break;
        }
        int length = snprintf(path, sizeof path, "%s/%s", folder[1] ? folder : "", entry->d_name);
        if (entry->d_name[0] != '.' && length < (int)sizeof path && is_folder(path, entry))
            good = walk(l, path, depth + 1);
    }
    if (dir)
        closedir(dir);
    return good;
}

bool td_run_list_add(struct td_run_list *l, const char *folder)
{
    return walk(l, folder, 0);
}

static int newest_first(const void *a, const void *b)
{
    const struct td_listed_run *x = a, *y = b;
    if (x->facts.started != y->facts.started)
        return x->facts.started > y->facts.started ? -1 : 1;
    return strcmp(x->path, y->path);
}

void td_run_list_sort(struct td_run_list *l)
{
    if (l->count)
        qsort(l->runs, l->count, sizeof *l->runs, newest_first);
}

void td_run_list_release(struct td_run_list *l)
{
    for (size_t i = 0; i < l->count; i++)
        free(l->runs[i].path);
    free(l->runs);
    *l = (struct td_run_list){0};
}
