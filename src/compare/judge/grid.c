/* grid.c: see grid.h. Looks at a sample of each tensor, until too many hold a value that is too fine. */
#include "compare/judge/grid.h"

#include "compare/layout/layout.h"
#include "compare/judge/verdict.h"
#include "kernel/compare.h"

#include <math.h>

/* A float32 lies on the grid of bfloat16 once in 2^16, on that of float16 once in 2^13: one tensor needs no
 * more values than this. Small ones (scales, counters) often hold round numbers and tell nothing. */
enum { SAMPLES = 64, SMALLEST = 32 };

/* One tensor does not speak for the side; and whole numbers and powers of two lie on every grid, so this many
 * values must need its last bit. Half of all rounded values do. */
enum { LEAST_TENSORS = 2, LEAST_WITNESSES = 32 };

/* A model of a narrow type keeps a stage or two of a dozen in a wider one (router, softmax), and a mistake
 * may leave the grid. One tensor in eight may be finer: it was computed from the others, and has their noise.
 */
enum { ONE_FINER_IN = 8 };

struct grid {
    enum td_dtype dtype;
    int bits; /* of mantissa behind the leading one */
};

/* v = m 2^e with a whole m of bits + 1 bits. */
static bool fits(double v, int bits)
{
    int exponent;
    double scaled = ldexp(frexp(v, &exponent), bits + 1);
    return scaled == floor(scaled);
}

static bool is_wide(const struct td_item *item, const struct grid *g)
{
    const struct td_tensor *t = item->parts[0];
    return !item->parameter && (t->dtype == TD_F32 || t->dtype == TD_F64) && t->count >= SMALLEST &&
           td_unit_roundoff(t->dtype) < td_unit_roundoff(g->dtype);
}

/* False: a value is finer than the grid, or could not be read. */
static bool lies_on(const struct td_item *item, const struct grid *g, int *witnesses, struct td_arena *arena)
{
    struct td_operand operand;
    struct td_steps first = {1, {{.kind = TD_STEP_FIRST}}};
    int64_t indices[SAMPLES];
    double v[SAMPLES];
    for (int i = 0; i < SAMPLES; i++)
        indices[i] = (int64_t)((double)item->parts[0]->count * i / SAMPLES);
    if (td_operand_make(&operand, item, &first, arena, NULL) != TDBG_OK ||
        td_operand_gather(&operand, indices, SAMPLES, v, NULL) != TDBG_OK)
        return false;
    for (int i = 0; i < SAMPLES; i++) {
        if (!isfinite(v[i]) || v[i] == 0)
            continue;
        if (!fits(v[i], g->bits))
            return false;
        *witnesses += !fits(v[i], g->bits - 1);
    }
    return true;
}

static bool side_lies_on(const struct td_side *side, const struct grid *g)
{
    struct td_arena arena;
    int tensors = 0, finer = 0, witnesses = 0;
    for (size_t i = 0; i < side->count; i++)
        tensors += is_wide(&side->items[i], g);
    td_arena_init(&arena, TD_MAX_METADATA);
    for (size_t i = 0; i < side->count && finer <= tensors / ONE_FINER_IN; i++)
        if (is_wide(&side->items[i], g))
            finer += !lies_on(&side->items[i], g, &witnesses, &arena);
    td_arena_release(&arena);
    return finer <= tensors / ONE_FINER_IN && tensors >= LEAST_TENSORS && witnesses >= LEAST_WITNESSES;
}

double td_side_grid(const struct td_side *side)
{
    static const struct grid grids[] = {{TD_BF16, 7}, {TD_F16, 10}, {TD_F32, 23}};
    for (size_t i = 0; i < sizeof grids / sizeof *grids; i++)
        if (side_lies_on(side, &grids[i]))
            return td_unit_roundoff(grids[i].dtype);
    return 0;
}
