/* sidecars.c: see sidecars.h. A sidecar speaks for the tensors in its folder and in the folders below it; the
 * places of one that comes later, of the next step or rank, lie behind those of the ones before. */
#include "session/sidecars.h"

#include "io/path.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

tdbg_status td_sidecars_add(struct td_sidecars *all, const char *prefix, const struct td_source *source,
                            struct tdbg_error *error)
{
    void *more = reallocarray(all->list, all->count + 1, sizeof *all->list);
    if (!more)
        return td_fail_nomem(error);
    all->list = more;
    size_t before = strlen(prefix), folders = (size_t)(td_path_base(source->name) - source->name);
    char *folder = malloc(before + folders + 1);
    if (!folder)
        return td_fail_nomem(error);
    memcpy(folder, prefix, before);
    memcpy(folder + before, source->name, folders);
    folder[before + folders] = 0;
    struct td_sidecar *sidecar = NULL;
    tdbg_status status = td_sidecar_open(&sidecar, source, error);
    if (status != TDBG_OK) {
        free(folder);
        return status;
    }
    all->list[all->count].sidecar = sidecar;
    all->list[all->count++].folder = folder;
    return TDBG_OK;
}

/* "dump_tensor_data/x.pt" for "step0/rank0/dump_tensor_data/x.pt:weight". */
static bool cut_key(const char *name, char *out, size_t size)
{
    size_t length = strcspn(name, ":");
    if (length >= size)
        return false;
    memcpy(out, name, length);
    out[length] = 0;
    return true;
}

void td_sidecars_apply(const struct td_sidecars *all, struct td_tensor *tensors, size_t count)
{
    uint64_t base = 0;
    for (size_t s = 0; s < all->count; s++) {
        const char *folder = all->list[s].folder;
        size_t length = strlen(folder);
        for (size_t i = 0; i < count; i++) {
            char file[TD_MAX_NAME + 1];
            if (strncmp(tensors[i].name, folder, length) != 0 ||
                !cut_key(tensors[i].name + length, file, sizeof file))
                continue;
            uint64_t place = td_sidecar_place(all->list[s].sidecar, file);
            if (place)
                tensors[i].sequence.noted = base + place;
        }
        base += td_sidecar_end(all->list[s].sidecar);
    }
}

void td_sidecars_release(struct td_sidecars *all)
{
    for (size_t i = 0; i < all->count; i++) {
        td_sidecar_close(&all->list[i].sidecar);
        free(all->list[i].folder);
    }
    free(all->list);
    *all = (struct td_sidecars){0};
}
