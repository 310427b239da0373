/* match_support.h: sides made of names, for the tests of items and of matching. */
#ifndef TD_TEST_MATCH_SUPPORT_H
#define TD_TEST_MATCH_SUPPORT_H

#include "test_support.h"

#include "compare/match/match.h"

#include <stdlib.h>

#define SHAPE(n, ...) ((struct td_shape){.ndim = (n), .size = {__VA_ARGS__}})

struct test_side {
    struct td_side side;
    struct td_tensor *tensors;
    const struct td_tensor **list;
    size_t count;
};

static inline struct td_tensor float_tensor(const char *name, struct td_shape shape, const float *data)
{
    struct td_tensor t = {.name = name, .format = "test", .dtype = TD_F32, .shape = shape};
    assert_ok(td_shape_count(&shape, &t.count, NULL));
    t.bytes = (uint64_t)t.count * sizeof(float);
    if (data)
        assert_ok(td_view_packed(&t.view, data, t.bytes, TD_F32, &shape, NULL));
    return t;
}

static inline void side_of_tensors(struct test_side *s, const struct td_tensor *tensors, size_t count)
{
    s->count = count;
    s->tensors = calloc(count + 1, sizeof *s->tensors);
    s->list = calloc(count + 1, sizeof(*s->list));
    for (size_t i = 0; i < count; i++) {
        s->tensors[i] = tensors[i];
        s->list[i] = &s->tensors[i];
    }
    assert_ok(td_side_init(&s->side, s->list, count, NULL));
}

/* Tensors of shape [2, 3], all of the same values. */
static inline void side_of_names(struct test_side *s, const char *const *names)
{
    static const float data[6];
    struct td_tensor tensors[64];
    size_t count = 0;
    for (; names[count]; count++)
        tensors[count] = float_tensor(names[count], SHAPE(2, 2, 3), data);
    side_of_tensors(s, tensors, count);
}

#define NAMES(...) ((const char *const[]){__VA_ARGS__, NULL})

static inline void side_free(struct test_side *s)
{
    td_side_release(&s->side);
    free(s->tensors);
    free(s->list);
}

static inline const struct td_item *item_named(const struct test_side *s, const char *name)
{
    for (size_t i = 0; i < s->side.count; i++)
        if (strcmp(s->side.items[i].name, name) == 0)
            return &s->side.items[i];
    fail_msg("no item '%s'", name);
    return NULL;
}

#endif
