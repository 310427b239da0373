/* trail.c: see trail.h. */
#include "analyse/trail.h"

#include <math.h>

void td_trail_init(struct td_trail *t, size_t most)
{
    t->most = most;
    t->count = 0;
    t->stride = 1;
    t->filled = 0;
}

static void thin_out(struct td_trail *t)
{
    for (size_t i = 0; i < t->count / 2; i++) {
        const struct td_trail_point a = t->points[2 * i], b = t->points[2 * i + 1];
        t->points[i] = (struct td_trail_point){
            .step = a.step, .low = fmin(a.low, b.low), .high = fmax(a.high, b.high), .last = b.last};
    }
    t->count /= 2;
    t->stride *= 2;
    t->filled = t->stride;
}

void td_trail_add(struct td_trail *t, int64_t step, double value)
{
    if (t->count > 0 && t->filled < t->stride) {
        struct td_trail_point *p = &t->points[t->count - 1];
        p->low = fmin(p->low, value);
        p->high = fmax(p->high, value);
        p->last = value;
        t->filled++;
        return;
    }
    if (t->count == t->most)
        thin_out(t);
    t->points[t->count++] = (struct td_trail_point){step, value, value, value};
    t->filled = 1;
}
