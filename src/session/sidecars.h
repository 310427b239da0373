/* sidecars.h: what the sidecars of a dump note about its tensors, put down in the catalogue. */
#ifndef TD_SESSION_SIDECARS_H
#define TD_SESSION_SIDECARS_H

#include "format/sidecar.h"
#include "tensor/tensor.h"

/* Those of one walk, with the folders that they speak for. */
struct td_sidecars {
    struct {
        struct td_sidecar *sidecar;
        char *folder; /* full, with the '/' at its end; or "" */
    } * list;
    size_t count;
};

/* The source is a sidecar, and `prefix` what stands before its name. One that cannot be read fails. */
TD_CHECK tdbg_status td_sidecars_add(struct td_sidecars *sidecars, const char *prefix,
                                     const struct td_source *source, struct tdbg_error *error);

/* Notes the places of the tensors that lie in the folders of the sidecars. */
void td_sidecars_apply(const struct td_sidecars *sidecars, struct td_tensor *tensors, size_t count);

void td_sidecars_release(struct td_sidecars *sidecars);

#endif
