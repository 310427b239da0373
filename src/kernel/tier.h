/* tier.h: the hot loops, once per instruction set, behind one table.
 *
 *     scalar   plain C, the specification
 *     vector   the compiler's vector extensions at the width every CPU of the architecture has
 *     avx2     the same source compiled for AVX2, with F16C for float16 and FMA where it rounds no
 *              differently
 *     avx512   the same for AVX-512 (F, DQ, BW, VL, VBMI2), with half of the divisions by multiplications and
 *              packing of its own; CPUs that lack VBMI2 slow down under wide vectors and take avx2
 *
 * All tiers give the same bits. The best one the CPU has is taken; TDBG_CPU=<name> overrides that (`best`
 * does not).
 */
#ifndef TD_KERNEL_TIER_H
#define TD_KERNEL_TIER_H

#include "base/status.h"
#include "kernel/block.h"
#include "kernel/pair.h"
#include "kernel/spread.h"
#include "kernel/tile.h"
#include "tensor/dtype.h"

struct td_kernels {
    const char *name;

    /* At most TD_BLOCK_LENGTH elements of that type, at any address. NULL: the type has no loop of its own
     * and is converted to doubles first. */
    struct td_partial (*stats[TD_PLAIN_DTYPES])(const void *elements, int64_t count);

    const struct td_pair_kernels *pairs;     /* two tensors at a time: pair.h */
    const struct td_spread_kernels *spreads; /* where an error sits: spread.h */
    const struct td_tile_kernels *tiles;     /* cells of pictures: tile.h */
};

/* The tier this process runs on. Fails with MISUSE when TDBG_CPU names none that this machine has. */
TD_CHECK tdbg_status td_kernels_select(const struct td_kernels **out, struct tdbg_error *error);

/* All tiers of this build that the CPU can run, best first; NULL-terminated. For tests and benchmarks. */
const struct td_kernels *const *td_kernels_usable(void);

extern const struct td_kernels td_kernels_scalar; /* stats_scalar.c */
extern const struct td_kernels td_kernels_vector; /* stats_vector.c */
#if defined(__x86_64__)
extern const struct td_kernels td_kernels_avx2, td_kernels_avx512; /* stats_vector.c again */
#endif

#endif
