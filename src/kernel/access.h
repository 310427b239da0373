/* access.h: an operand made ready to be read anywhere, again and again, by any number of threads.
 *
 * What a part needs before it can be read (load.h) is done once. Then a run of the row-major order or a slice
 * of the operand's shape costs little more than its loads: a slice of a dense part is a view of it, a slice
 * across parts is cut where it passes from one to the next, partial sums are added up as they are read.
 */
#ifndef TD_KERNEL_ACCESS_H
#define TD_KERNEL_ACCESS_H

#include "kernel/load.h"
#include "tensor/operand.h"
#include "tensor/slice.h"

struct td_access {
    const struct td_operand *operand; /* borrowed */
    struct td_loader *loaders;        /* owned; one for each part */
};

TD_CHECK tdbg_status td_access_init(struct td_access *access, const struct td_operand *operand,
                                    struct tdbg_error *error);
void td_access_release(struct td_access *access);

/* Elements [start, start + count) in row-major order, as doubles (complex: the modulus). */
TD_CHECK tdbg_status td_access_run(const struct td_access *access, int64_t start, int64_t count, double *out,
                                   struct tdbg_error *error);

/* The elements of a slice of the operand's shape, in the slice's order, likewise. */
TD_CHECK tdbg_status td_access_slice(const struct td_access *access, const struct td_slice *slice,
                                     double *out, struct tdbg_error *error);

#endif
