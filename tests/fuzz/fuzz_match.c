/* fuzz_match.c: any names and values through shards, places and every strategy: a line for the chain, the
 * names of A, an empty line, the names of B. No tensor may get lost, and whole tensors are in one pair.
 *
 *     model.layers.0.mlp=c5a1       what is behind the last "=" says which shape, which values, where they
 *                                   begin, which type; without it the name's length does
 */
#include "compare/match/match.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 128, BANK = 4096, BANKS = 8 };

struct names {
    struct td_tensor tensors[MOST];
    const struct td_tensor *list[MOST];
    size_t count;
};

struct layout {
    struct td_shape shape;
    int64_t strides[4];
    bool strided;
};

/* Tokens, heads, a batch, nothing at all; expanded, reversed, and far more elements than there are bytes. */
static const struct layout layouts[] = {
    {.shape = {1, {6}}},
    {.shape = {0, {0}}},
    {.shape = {1, {0}}},
    {.shape = {2, {9, 4}}},
    {.shape = {2, {9, 12}}},
    {.shape = {3, {1, 9, 4}}},
    {.shape = {3, {2, 9, 4}}},
    {.shape = {2, {18, 4}}},
    {.shape = {4, {1, 2, 9, 9}}},
    {.shape = {2, {9, 0}}},
    {.shape = {2, {4, 9}}},
    {.shape = {2, {9, 8}}},
    {.shape = {2, {9, 16384}}, .strides = {1, 0}, .strided = true},
    {.shape = {2, {9, 64}}, .strides = {0, 1}, .strided = true},
    {.shape = {2, {INT64_C(1) << 20, INT64_C(1) << 20}}, .strides = {0, 0}, .strided = true},
    {.shape = {3, {9, INT64_C(1) << 31, 8}}, .strides = {8, 0, 1}, .strided = true},
};

static const enum td_dtype dtypes[] = {TD_F32, TD_F16, TD_BF16, TD_F64, TD_I64, TD_U8, TD_BOOL, TD_F32};

static float banks[BANKS][BANK];

/* Unrelated numbers, such as lie near each other, one number, none, extremes, small and whole ones. */
static void fill_banks(void)
{
    uint32_t state = 1;
    for (int i = 0; i < BANK; i++) {
        state = state * 1664525 + 1013904223;
        float x = (float)(state >> 8) / 0x1p23f - 1;
        const float values[BANKS] = {x,
                                     1.001f * x,
                                     3,
                                     NAN,
                                     i % 7 ? x : INFINITY,
                                     i % 2 ? 3e38f : -3e38f,
                                     1e-40f * (float)(i % 5),
                                     (float)(i % 3)};
        for (int k = 0; k < BANKS; k++)
            banks[k][i] = values[k];
    }
}

static int digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : 0;
}

static void add(struct names *names, char *name, size_t length)
{
    struct td_tensor *t = &names->tensors[names->count];
    char *spec = strrchr(name, '=');
    int what[4] = {(int)(length % 16), (int)(length / 16 % BANKS), 0, 0};
    for (int i = 0; spec && i < 4 && spec[1 + i]; i++)
        what[i] = digit(spec[1 + i]);
    if (spec)
        *spec = '\0';
    const struct layout *l = &layouts[what[0]];
    const float *values = banks[what[1] % BANKS] + 16 * what[2];
    size_t bytes = (size_t)(BANK - 16 * what[2]) * sizeof *values;
    enum td_dtype dtype = dtypes[what[3] % 8];
    *t = (struct td_tensor){.name = name, .format = "", .dtype = dtype, .shape = l->shape};
    tdbg_status status = l->strided
                             ? td_view_strided(&t->view, values, bytes, dtype, 0, &l->shape, l->strides, NULL)
                             : td_view_packed(&t->view, values, bytes, dtype, &l->shape, NULL);
    if (status != TDBG_OK)
        abort();
    t->count = t->view.count;
    names->list[names->count++] = t;
}

/* Splits `text` in place; returns the chain. */
static const char *split(char *text, struct names sides[2])
{
    char *chain = strsep(&text, "\n"), *line;
    int side = 0;
    while ((line = strsep(&text, "\n"))) {
        if (!*line)
            side = 1;
        else if (sides[side].count < MOST)
            add(&sides[side], line, strlen(line));
    }
    return chain;
}

/* Other names of a tensor are in no pair of their own; the name that the pair has is one of all. */
static void check_aliases(const struct td_aliases *aliases, const struct td_side *side,
                          const struct td_item *item, size_t *seen, bool first)
{
    size_t own = 0;
    for (size_t k = 0; k < aliases->count; k++)
        own += aliases->items[k] == item;
    if (aliases->count && own != 1)
        abort();
    for (size_t k = 0; first && k < aliases->count; k++)
        if (aliases->items[k] != item && seen[aliases->items[k] - side->items]++)
            abort();
}

static void check(const struct td_matches *matches, const struct td_side *side, bool of_a)
{
    size_t *seen = calloc(side->count + 1, sizeof *seen);
    if (!seen)
        return;
    for (size_t i = 0; i < matches->count; i++) {
        const struct td_match *m = &matches->pairs[i];
        const struct td_item *item = of_a ? m->a : m->b;
        if (!item)
            continue;
        size_t at = (size_t)(item - side->items);
        if (seen[at]++ && (of_a ? m->fused_a : m->fused_b).of == 0)
            abort();
        check_aliases(of_a ? &m->aliases_a : &m->aliases_b, side, item, seen, seen[at] == 1);
    }
    for (size_t i = 0; i < side->count; i++)
        if (!seen[i])
            abort();
    free(seen);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (banks[2][0] == 0)
        fill_banks();
    char *text = malloc(size + 1);
    struct names *names = calloc(2, sizeof *names);
    struct td_side sides[2] = {0};
    struct td_matches matches = {0};
    if (text && names && size < 16384) {
        memcpy(text, data, size);
        text[size] = '\0';
        struct td_match_options options = {.strategy = split(text, names)};
        if (td_side_init(&sides[0], names[0].list, names[0].count, NULL) == TDBG_OK &&
            td_side_init(&sides[1], names[1].list, names[1].count, NULL) == TDBG_OK &&
            td_match_sides(&matches, &sides[0], &sides[1], &options, NULL, NULL) == TDBG_OK) {
            check(&matches, &sides[0], true);
            check(&matches, &sides[1], false);
        }
    }
    td_matches_release(&matches);
    td_side_release(&sides[0]);
    td_side_release(&sides[1]);
    free(names);
    free(text);
    return 0;
}
