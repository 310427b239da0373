/* profile_open.c: see profile_open.h. */
#include "analyse/profile_open.h"

#include "analyse/profile_run.h"
#include "store/run_folders.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

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

/* The number at the end of ".../rank-12"; -1 where there is none. */
static int rank_of(const char *path)
{
    const char *dash = strrchr(path, '-');
    int rank, length = 0;
    if (!dash || sscanf(dash + 1, "%5d%n", &rank, &length) != 1 || dash[1 + length])
        return -1;
    return rank;
}

tdbg_status td_profile_ranks(const char *path, int **ranks, size_t *count, struct tdbg_error *error)
{
    struct td_run_folders folders;
    *ranks = NULL;
    *count = 0;
    if (td_run_is(path))
        return TDBG_OK;
    TD_TRY(td_run_folders_init(&folders, path, error));
    int *found = calloc(folders.count + 1, sizeof *found);
    for (size_t i = 0; found && i < folders.count; i++)
        if ((found[*count] = rank_of(folders.paths[i])) >= 0)
            ++*count;
    td_run_folders_release(&folders);
    *ranks = found;
    return found ? TDBG_OK : td_fail_nomem(error);
}
