/* run_api.c: tdbg_run_open and tdbg_run_close: where a run is recorded, by which rank, and who may stop it.
 *
 * Only files of an earlier run are ever removed from a folder, only when the program asks for it, and never
 * under a process that writes them.
 */
#include "io/folder_make.h"
#include "live/control.h"
#include "live/socket.h"
#include "record/recorder.h"
#include "store/run_folders.h"
#include "store/run_state.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What launchers call the rank of a process and how many there are. */
static const struct {
    const char *rank, *world;
} launchers[] = {
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
    {"PMI_RANK", "PMI_SIZE"},
    {"RANK", "WORLD_SIZE"},
    {"SLURM_PROCID", "SLURM_NTASKS"},
};

static bool read_count(const char *name, int *out)
{
    const char *text = getenv(name);
    char *end;
    long value = text && *text ? strtol(text, &end, 10) : -1;
    if (value < 0 || value > 1 << 24 || *end)
        return false;
    *out = (int)value;
    return true;
}

static void find_rank(const struct tdbg_run_options *options, int *rank, int *world)
{
    *rank = options->rank;
    *world = options->world;
    if (*world > 0)
        return;
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++)
        if (read_count(launchers[i].rank, rank) && read_count(launchers[i].world, world) && *rank < *world)
            return;
    *rank = 0;
    *world = 1;
}

/* Its process answers; where it cannot, it lives at least. A run of another machine that nobody can ask
 * counts as over: it would be in the way for ever. */
static bool is_recorded_now(const char *path)
{
    struct td_run_store *store;
    struct td_run_facts facts = {0};
    int fd;
    tdbg_status asked = td_socket_connect(&fd, path, TD_RUN_CONTROL, NULL);
    if (asked == TDBG_OK)
        close(fd);
    if (asked != TDBG_NOTFOUND)
        return true;
    if (td_run_store_open(&store, path, NULL) != TDBG_OK)
        return false;
    bool read = td_run_facts(store, &facts, NULL) == TDBG_OK;
    td_run_store_close(&store);
    return read && td_run_is_others(&facts);
}

static tdbg_status remove_run(const char *path, struct tdbg_error *error)
{
    tdbg_status status = TDBG_OK;
    if (is_recorded_now(path))
        return td_fail(error, TDBG_MISUSE, "a process records into it now: not replaced");
    DIR *dir = opendir(path);
    if (!dir)
        return td_fail_errno(error, "cannot look into the folder");
    for (struct dirent *e; status == TDBG_OK && (e = readdir(dir));)
        if (td_run_owns(e->d_name) && unlinkat(dirfd(dir), e->d_name, 0) != 0)
            status = td_fail_errno(error, "cannot remove the earlier run");
    closedir(dir);
    return status;
}

static tdbg_status open_run(tdbg_run **out, const char *dir, const struct tdbg_run_options *options,
                            struct tdbg_error *error)
{
    char path[4096];
    tdbg_run *run;
    int rank, world;
    find_rank(options, &rank, &world);
    int length = world > 1 ? snprintf(path, sizeof path, "%s/rank-%d", dir, rank)
                           : snprintf(path, sizeof path, "%s", dir);
    if (length < 0 || (size_t)length >= sizeof path)
        return td_fail(error, TDBG_MISUSE, "path too long");
    TD_TRY(td_folder_make(path, 0777, error));
    if (td_run_is(path)) {
        if (!options->replace)
            return td_fail(error, TDBG_MISUSE, "holds a run already");
        TD_TRY(remove_run(path, error));
    }
    TD_TRY(td_recorder_open(&run, path, options, rank, world, error));
    if (!options->no_control) {
        tdbg_status status = td_control_open(&run->control, run, path, error);
        if (status != TDBG_OK) {
            (void)!td_recorder_close(&run, NULL);
            return status;
        }
    }
    *out = run;
    return TDBG_OK;
}

tdbg_status tdbg_run_open(tdbg_run **run, const char *dir, const struct tdbg_run_options *options)
{
    static const struct tdbg_run_options defaults = {0};
    struct tdbg_error *error = options ? options->error : NULL;
    if (!dir)
        dir = getenv("TDBG_RUN");
    if (!dir || !*dir) {
        *run = NULL;
        return TDBG_OK;
    }
    tdbg_status status = open_run(run, dir, options ? options : &defaults, error);
    if (status != TDBG_OK)
        td_error_prefix(error, dir);
    return status;
}

tdbg_status tdbg_run_end(tdbg_run **run, struct tdbg_error *error)
{
    if (!run || !*run)
        return TDBG_OK;
    td_control_close(&(*run)->control);
    return td_recorder_close(run, error);
}

tdbg_status tdbg_run_close(tdbg_run **run)
{
    return tdbg_run_end(run, NULL);
}
