/* ranking.c: see ranking.h. */
#include "serve/ranking.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* The pairs that the order names, each once; `seen` has room for all. */
static void take_named(struct td_ranking *r, const json_t *order, size_t count, bool *seen)
{
    for (size_t i = 0; i < json_array_size(order); i++) {
        const json_t *index = json_array_get(order, i);
        json_int_t pair = json_integer_value(index);
        if (!json_is_integer(index) || pair < 0 || (uint64_t)pair >= count || seen[pair])
            continue;
        seen[pair] = true;
        r->pairs[r->count++] = (size_t)pair;
    }
}

tdbg_status td_ranking_init(struct td_ranking *out, const char *state, size_t count, struct tdbg_error *error)
{
    struct td_ranking r = {.pairs = calloc(count + 1, sizeof *r.pairs)};
    bool *seen = calloc(count + 1, sizeof *seen);
    json_t *notes = json_loads(state, 0, NULL);
    if (r.pairs && seen) {
        take_named(&r, json_object_get(notes, "order"), count, seen);
        for (size_t i = 0; i < count; i++)
            if (!seen[i])
                r.pairs[r.count++] = i;
        *out = r;
    } else {
        free(r.pairs);
    }
    bool good = r.pairs && seen;
    json_decref(notes);
    free(seen);
    return good ? TDBG_OK : td_fail_nomem(error);
}

void td_ranking_release(struct td_ranking *ranking)
{
    free(ranking->pairs);
    *ranking = (struct td_ranking){0};
}

void td_ranking_move(struct td_ranking *ranking, size_t from, size_t to)
{
    size_t *p = ranking->pairs, moved = p[from];
    if (from < to)
        memmove(p + from, p + from + 1, (to - from) * sizeof *p);
    else
        memmove(p + to + 1, p + to, (from - to) * sizeof *p);
    p[to] = moved;
}

static int append(const char *text, size_t size, void *out)
{
    td_buffer_append(out, text, size);
    return 0;
}

tdbg_status td_ranking_store(const struct td_ranking *ranking, const char *state, struct td_buffer *out,
                             struct tdbg_error *error)
{
    json_t *notes = json_loads(state, 0, NULL), *order = json_array();
    if (!json_is_object(notes)) {
        json_decref(notes);
        notes = json_object();
    }
    bool good = order != NULL;
    for (size_t i = 0; i < ranking->count && good; i++)
        good = json_array_append_new(order, json_integer((json_int_t)ranking->pairs[i])) == 0;
    good = good && json_object_set(notes, "order", order) == 0 &&
           json_dump_callback(notes, append, out, JSON_COMPACT) == 0 && !out->failed;
    json_decref(order);
    json_decref(notes);
    return good ? TDBG_OK : td_fail_nomem(error);
}
