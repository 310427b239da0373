/* profile_open.c: see profile_open.h. */
#include "analyse/profile_open.h"

#include "analyse/profile_run.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { RANKS = 1 << 16 };

static tdbg_status fill_from_run(struct td_profile_source *s, const char *path, struct td_job *job,
                                 struct tdbg_error *error)
{
    struct td_run_store *store = NULL;
    TD_TRY(td_run_store_open(&store, path, error));
    s->is_run = true;
    tdbg_status status = td_run_facts(store, &s->run, error);
    if (status == TDBG_OK)
        status = td_run_profile(&s->profile, store, job, error);
    td_run_store_close(&store);
    return status;
}

static tdbg_status fill_from_trace(struct td_profile_source *s, const char *path, struct td_job *job,
                                   struct tdbg_error *error)
{
    struct td_trace_text text;
    TD_TRY(td_trace_text_open(&text, path, job, error));
    tdbg_status status = td_trace_profile(&s->profile, &text, &s->trace, error);
    td_trace_text_close(&text);
    return status;
}

static bool is_folder(const char *path)
{
    struct stat facts;
    return stat(path, &facts) == 0 && S_ISDIR(facts.st_mode);
}

tdbg_status td_profile_source_open(struct td_profile_source *out, const char *path, struct td_job *job,
                                   struct tdbg_error *error)
{
    memset(out, 0, sizeof *out);
    TD_TRY(td_profile_init(&out->profile, error));
    tdbg_status status;
    if (td_run_is(path))
        status = fill_from_run(out, path, job, error);
    else if (is_folder(path))
        status = td_fail(error, TDBG_UNSUPPORTED, "a folder without " TD_RUN_INDEX ": not a recorded run");
    else
        status = fill_from_trace(out, path, job, error);
    if (status == TDBG_OK)
        status = td_profile_finish(&out->profile, error);
    if (status != TDBG_OK)
        td_profile_source_close(out);
    return status;
}

void td_profile_source_close(struct td_profile_source *source)
{
    td_profile_release(&source->profile);
}

/* "rank-12" is 12; -1 for any other name. */
static int rank_of(const char *name)
{
    int rank, length = 0;
    if (sscanf(name, "rank-%5d%n", &rank, &length) != 1 || name[length] || rank < 0 || rank >= RANKS)
        return -1;
    return rank;
}

static int ascending(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

tdbg_status td_profile_ranks(const char *path, int **ranks, size_t *count, struct tdbg_error *error)
{
    *ranks = NULL;
    *count = 0;
    DIR *dir = td_run_is(path) ? NULL : opendir(path);
    if (!dir)
        return TDBG_OK;
    size_t room = 0;
    const struct dirent *entry;
    tdbg_status status = TDBG_OK;
    while (status == TDBG_OK && (entry = readdir(dir))) {
        char inner[4096];
        int rank = rank_of(entry->d_name);
        if (rank < 0 || snprintf(inner, sizeof inner, "%s/%s", path, entry->d_name) >= (int)sizeof inner ||
            !td_run_is(inner))
            continue;
        if (*count == room) {
            room = room ? room * 2 : 16;
            int *bigger = realloc(*ranks, room * sizeof **ranks);
            if (!bigger) {
                status = td_fail_nomem(error);
                break;
            }
            *ranks = bigger;
        }
        (*ranks)[(*count)++] = rank;
    }
    closedir(dir);
    if (status != TDBG_OK) {
        free(*ranks);
        *ranks = NULL;
        *count = 0;
    } else if (*count) {
        qsort(*ranks, *count, sizeof **ranks, ascending);
    }
    return status;
}
