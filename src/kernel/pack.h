/* pack.h: the pairs of a block of 16-bit floats whose bits differ, one behind the other (see pair.h).
 *
 * A tile of a block at a time is looked at and packed, in the order of td_pack_turn, while its side a is
 * added up; when the whole block is packed, what there is becomes floats again, some rows at a time. How that
 * is done best depends on the CPU: pack_pairs.h and pack_shorts.h have the same functions.
 *
 *     td_pack_begin, td_pack_end     before the first tile, and after the last
 *     td_pack_tile                   packs a tile, and adds side a to `sums` (d and d^2, around `shift`)
 *     td_pack_stage                  rows of packed pairs as floats; sees how far they are apart, and answers
 * with the magnitude nearest to zero among them td_pack_differing              how many packed pairs are of
 * different value: those that are not are both zeros, if there are any
 *
 * Packed rows are whole: td_pack_end fills the last one up with a pair of equals, which adds nothing.
 */
#ifndef TD_KERNEL_PACK_H
#define TD_KERNEL_PACK_H

#include "kernel/lanes.h"
#include "kernel/look.h"
#include "kernel/pair_sums.h"

#include <string.h>

/* Rows that are packed at once, and those of a tile. Memory is asked for one tile ahead, in pairs. */
enum {
    TD_PACK_ROWS = 2,
    TD_PACK_PAIRS = TD_PACK_ROWS * TD_LANES,
    TD_PACK_TILE = 64,
    TD_PACK_AHEAD = TD_PACK_TILE * TD_LANES
};

#if defined(__AVX512VBMI2__) && TD_VECTOR_BYTES == 64
#include "kernel/pack_shorts.h"
#else
#include "kernel/pack_pairs.h"
#endif

/* Whether d^2 and d a are exact as doubles, for all pairs of a 16-bit type of which one magnitude is
 * `nearest` to zero and one the `largest`. Where exponents are at most k apart, d has at most k + 1 bits more
 * than a float of the type; its square is exact where it has 26. */
TD_INLINE bool td_pack_is_exact(enum td_dtype dtype, uint16_t nearest, uint16_t largest)
{
    const int digits = dtype == TD_BF16 ? 8 : 11,
              apart = (largest >> (digits - 1)) - (nearest >> (digits - 1));
    return digits + apart + 1 <= 26;
}

#endif
