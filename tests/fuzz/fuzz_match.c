/* fuzz_match.c: any names through shards, places and every strategy: a line for the chain, the names of A, an
 * empty line, the names of B. No tensor may get lost, and whole tensors are in one pair. */
#include "compare/match/match.h"

#include <stdlib.h>
#include <string.h>

enum { MOST = 128 };

static const float values[6] = {1, 2, 3, 4, 5, 6};

struct names {
    struct td_tensor tensors[MOST];
    const struct td_tensor *list[MOST];
    size_t count;
};

static void add(struct names *names, const char *name, size_t length)
{
    struct td_tensor *t = &names->tensors[names->count];
    struct td_shape shape = {.ndim = 1, .size = {1 + (int64_t)(length % 6)}};
    *t = (struct td_tensor){
        .name = name, .format = "", .dtype = TD_F32, .shape = shape, .count = shape.size[0]};
    if (td_view_packed(&t->view, values, sizeof values, TD_F32, &shape, NULL) != TDBG_OK)
        abort();
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
    }
    for (size_t i = 0; i < side->count; i++)
        if (!seen[i])
            abort();
    free(seen);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
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
