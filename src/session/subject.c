/* subject.c: see subject.h.
 *
 * A side is made ready twice, for the layout of the comparison and for its own shape: both are views of the
 * same bytes and cost next to nothing, but for sparse tensors, whose index table is looked through.
 */
#include "session/subject.h"

#include "session/gallery.h"
#include "session/side.h"

/* Descriptors of shards; a tensor summed over an axis of a million ranks is no honest one. */
enum { ARENA_LIMIT = 64 << 20 };

/* How the shards of an item become one tensor: the first step of its layout, where it has one. */
static struct td_steps join_steps(const struct td_item *item, const struct td_steps *layout)
{
    struct td_steps steps = {0};
    if (item->part_count == 1)
        return steps;
    steps.count = 1;
    steps.step[0] = layout ? layout->step[0] : (struct td_step){.kind = TD_STEP_FIRST};
    return steps;
}

static tdbg_status own_init(struct td_subject *s, int side, const struct td_item *item,
                            const struct td_steps *layout, struct tdbg_error *error)
{
    struct td_steps own = join_steps(item, layout);
    TD_TRY(td_operand_make(&s->own[side].operand, item, &own, &s->arena, error));
    TD_TRY(td_access_init(&s->own[side].access, &s->own[side].operand, error));
    s->items[side] = item;
    s->has[side] = true;
    return TDBG_OK;
}

static tdbg_status side_make(struct td_subject *s, int side, const struct td_item *item,
                             const struct td_steps *layout, struct tdbg_error *error)
{
    struct td_steps own = join_steps(item, layout);
    TD_TRY(own_init(s, side, item, layout, error));
    return td_operand_make(&s->side[side].operand, item, layout ? layout : &own, &s->arena, error);
}

static bool can_be_real(const struct td_operand *o)
{
    for (int p = 0; p < o->part_count; p++)
        if (!td_tensor_is_dense(&o->parts[p]) || !td_view_can_be_real(&o->parts[p].view))
            return false;
    return o->count <= TD_MAX_ELEMENTS / 2;
}

static void make_real(struct td_operand *o)
{
    for (int p = 0; p < o->part_count; p++) {
        struct td_tensor *t = &o->parts[p];
        t->view = td_view_as_real(&t->view);
        t->dtype = t->view.dtype;
        t->shape = t->view.shape;
        t->count = t->view.count;
    }
    o->shape.size[o->shape.ndim++] = 2;
    o->count *= 2;
}

/* Of the sides that were made. */
static tdbg_status sides_begin(struct td_subject *s, struct tdbg_error *error)
{
    s->as_real = true;
    for (int i = 0; i < 2; i++)
        s->as_real = s->as_real && (!s->has[i] || can_be_real(&s->side[i].operand));
    for (int i = 0; i < 2; i++) {
        struct td_aspect *side = &s->side[i];
        if (!s->has[i])
            continue;
        if (s->as_real)
            make_real(&side->operand);
        s->shape = side->operand.shape;
        s->count = side->operand.count;
        TD_TRY(td_access_init(&side->access, &side->operand, error));
    }
    return TDBG_OK;
}

static tdbg_status sides_init(struct td_subject *s, const struct td_pair *pair, struct tdbg_error *error)
{
    bool both = pair->a && pair->b;
    s->apart = both && !pair->layout;
    if (s->apart) {
        TD_TRY(own_init(s, 0, pair->a, NULL, error));
        return own_init(s, 1, pair->b, NULL, error);
    }
    if (pair->a)
        TD_TRY(side_make(s, 0, pair->a, both ? &pair->layout->a : NULL, error));
    if (pair->b)
        TD_TRY(side_make(s, 1, pair->b, both ? &pair->layout->b : NULL, error));
    return sides_begin(s, error);
}

tdbg_status td_subject_of_sides(struct td_subject *out, const struct td_pair *pair, struct tdbg_error *error)
{
    *out = (struct td_subject){.pair = pair};
    td_arena_init(&out->arena, ARENA_LIMIT);
    tdbg_status status = sides_init(out, pair, error);
    if (status != TDBG_OK)
        td_subject_release(out);
    return status;
}

tdbg_status td_subject_check(const struct td_subject *subject, struct tdbg_error *error)
{
    if (subject->apart)
        return td_fail(error, TDBG_MISMATCH, "the two sides do not line up: %s",
                       subject->pair->outcome.ruling.reason);
    return TDBG_OK;
}

tdbg_status td_subject_of_pair(struct td_subject *out, const struct td_pair *pair, struct tdbg_error *error)
{
    TD_TRY(td_subject_of_sides(out, pair, error));
    tdbg_status status = td_subject_check(out, error);
    if (status != TDBG_OK)
        td_subject_release(out);
    return status;
}

tdbg_status td_subject_of_tensor(struct td_subject *out, const struct td_tensor *tensor,
                                 struct tdbg_error *error)
{
    *out = (struct td_subject){.tensor = tensor};
    td_arena_init(&out->arena, ARENA_LIMIT);
    struct td_item *item = td_arena_alloc(&out->arena, sizeof *item);
    const struct td_tensor **parts = td_arena_alloc(&out->arena, sizeof(const struct td_tensor *));
    tdbg_status status = TDBG_OK;
    if (item && parts) {
        parts[0] = tensor;
        *item = (struct td_item){.name = tensor->name, .part_count = 1, .parts = parts};
        status = side_make(out, 0, item, NULL, error);
        if (status == TDBG_OK)
            status = sides_begin(out, error);
    } else {
        status = td_fail_nomem(error);
    }
    if (status != TDBG_OK)
        td_subject_release(out);
    return status;
}

void td_subject_release(struct td_subject *subject)
{
    td_gallery_forget(subject->gallery, subject);
    for (int i = 0; i < 2; i++) {
        td_access_release(&subject->side[i].access);
        td_access_release(&subject->own[i].access);
    }
    td_arena_release(&subject->arena);
    *subject = (struct td_subject){0};
}

tdbg_status td_subject_verify(const struct td_subject *subject, struct tdbg_error *error)
{
    for (int side = 0; side < 2; side++)
        if (subject->items[side])
            TD_TRY(td_item_verify(subject->items[side], error));
    return TDBG_OK;
}

static tdbg_status check_side(const struct td_subject *subject, int side, struct tdbg_error *error)
{
    return subject->has[side] ? TDBG_OK : td_fail(error, TDBG_MISUSE, "this pair has no side %c", 'a' + side);
}

static tdbg_status values_of(const struct td_subject *subject, const struct td_aspect *aspects, int side,
                             const struct td_slice *slice, double *out, struct tdbg_error *error)
{
    TD_TRY(check_side(subject, side, error));
    TD_TRY(td_access_slice(&aspects[side].access, slice, out, error));
    return td_item_verify(subject->items[side], error);
}

tdbg_status td_subject_values(const struct td_subject *subject, int side, const struct td_slice *slice,
                              double *out, struct tdbg_error *error)
{
    return values_of(subject, subject->side, side, slice, out, error);
}

tdbg_status td_subject_own_values(const struct td_subject *subject, int side, const struct td_slice *slice,
                                  double *out, struct tdbg_error *error)
{
    return values_of(subject, subject->own, side, slice, out, error);
}

tdbg_status td_subject_run(const struct td_subject *subject, int side, int64_t start, int64_t count,
                           double *out, struct tdbg_error *error)
{
    TD_TRY(check_side(subject, side, error));
    TD_TRY(td_access_run(&subject->side[side].access, start, count, out, error));
    return td_item_verify(subject->items[side], error);
}

tdbg_status td_subject_parse_flat(const struct td_subject *subject, const char *text, struct td_slice *out,
                                  struct tdbg_error *error)
{
    struct td_shape flat = {.ndim = 1, .size = {subject->count}};
    TD_TRY(td_slice_parse(out, text, &flat, error));
    if (out->axis[0].step != 1)
        return td_fail(error, TDBG_MISUSE, "a range of the flattened tensor has no step: [%.80s]", text);
    return TDBG_OK;
}
