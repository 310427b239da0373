/* doubted.c: see doubted.h.
 *
 * Whom to ask: for queries, keys and values the output of attention in the same layer (or its input to the
 * last product), for gate and up that of the MLP, by their roles; a tensor without a role asks the next one
 * in the order of execution that is computed from it. No more than that: further on the residual stream, and
 * branches that run beside attention, agree whatever became of it.
 *
 * A mistake elsewhere in every layer must not make a right layout look wrong. So the parts of a fused tensor
 * are also borne out by a resemblance: a wrong split mixes queries, keys and values, and what comes of that
 * has little in common with the right result, while a wrong scale or mask leaves most of it; and for the
 * first token of causal attention, which sees nothing but its own value, all of it.
 */
#include "compare/layout/doubted.h"

#include "compare/judge/flow.h"
#include "compare/layout/sampled.h"

#include <string.h>

static const struct td_match *match_at(const struct td_fit *fit, size_t i)
{
    return &fit->matches->pairs[i];
}

static bool is_part(const struct td_match *m)
{
    return m->fused_a.of > 0 || m->fused_b.of > 0;
}

/* --- whom to ask ---------------------------------------------------------------------------------------- */

enum lane { LANE_NONE, LANE_ATTENTION, LANE_MLP };

static enum lane lane_into(const struct td_item *item)
{
    static const char *const stages[] = {"query_final", "key_final", "value_final"};
    static const enum lane lanes[TD_ROLES] = {
        [TD_ROLE_ATTN_Q] = LANE_ATTENTION,      [TD_ROLE_ATTN_K] = LANE_ATTENTION,
        [TD_ROLE_ATTN_V] = LANE_ATTENTION,      [TD_ROLE_ATTN_QKV] = LANE_ATTENTION,
        [TD_ROLE_ATTN_Q_NORM] = LANE_ATTENTION, [TD_ROLE_ATTN_K_NORM] = LANE_ATTENTION,
        [TD_ROLE_ATTN_Q_ROPE] = LANE_ATTENTION, [TD_ROLE_ATTN_K_ROPE] = LANE_ATTENTION,
        [TD_ROLE_MLP_GATE] = LANE_MLP,          [TD_ROLE_MLP_UP] = LANE_MLP,
        [TD_ROLE_MLP_GATE_UP] = LANE_MLP,
    };
    for (size_t i = 0; i < sizeof stages / sizeof *stages; i++)
        if (strcmp(item->stage, stages[i]) == 0)
            return LANE_ATTENTION;
    return lanes[item->role];
}

static enum lane lane_out_of(const struct td_item *item)
{
    bool input = td_role_of(item->name, item->layer, item->stage).kind == TD_PART_INPUT;
    if (item->role == TD_ROLE_ATTN_O || (item->role == TD_ROLE_CONTEXT && !input) ||
        strcmp(item->stage, "post_attn") == 0)
        return LANE_ATTENTION;
    if (item->role == TD_ROLE_MLP_DOWN)
        return LANE_MLP;
    if (input) /* of a module: what its norm puts out */
        return LANE_NONE;
    return item->role == TD_ROLE_ATTN ? LANE_ATTENTION : item->role == TD_ROLE_MLP ? LANE_MLP : LANE_NONE;
}

static enum lane lane_of(const struct td_match *m, enum lane (*side)(const struct td_item *item))
{
    return side(m->a) != LANE_NONE ? side(m->a) : side(m->b);
}

/* query_final of query, and a norm on it. */
static bool goes_on(const struct td_match *m, const struct td_match *next)
{
    size_t length = strlen(m->a->stage);
    if (strncmp(next->a->stage, m->a->stage, length) == 0 && strcmp(next->a->stage + length, "_final") == 0)
        return true;
    return (m->a->role == TD_ROLE_ATTN_Q &&
            (next->a->role == TD_ROLE_ATTN_Q_NORM || next->a->role == TD_ROLE_ATTN_Q_ROPE)) ||
           (m->a->role == TD_ROLE_ATTN_K &&
            (next->a->role == TD_ROLE_ATTN_K_NORM || next->a->role == TD_ROLE_ATTN_K_ROPE));
}

/* Another tensor of the layer, that was measured. */
static bool may_speak(const struct td_fit *fit, size_t i, size_t k)
{
    const struct td_match *m = match_at(fit, i), *other = match_at(fit, k);
    return k != i && td_fitting_measured(&fit->list[k]) && other->a->layer == m->a->layer &&
           !other->a->parameter && !other->b->parameter && other->a != m->a && other->b != m->b;
}

/* --- what it says --------------------------------------------------------------------------------------- */

/* One token of the operands alone, the first. */
static bool take_first_token(struct td_layout *layout, int64_t tokens)
{
    int axis = 0;
    while (axis < layout->shape.ndim && layout->shape.size[axis] != tokens)
        axis++;
    if (tokens < 2 || axis == layout->shape.ndim || layout->a.count == TD_MAX_STEPS ||
        layout->b.count == TD_MAX_STEPS)
        return false;
    struct td_step first = {.kind = TD_STEP_SLICE, .axis = axis, .from = 0, .to = 1};
    layout->a.step[layout->a.count++] = layout->b.step[layout->b.count++] = first;
    layout->shape.size[axis] = 1;
    return true;
}

static bool resembles(const struct td_fit *fit, size_t k)
{
    const struct td_match *m = match_at(fit, k);
    struct td_layout first = *fit->list[k].layout;
    return td_layout_fit(m->a, m->b, &first) > TD_CONVINCING ||
           (take_first_token(&first, fit->model->tokens) &&
            td_layout_fit(m->a, m->b, &first) > TD_CONVINCING);
}

enum word { SILENT, AGAINST, FOR };

static enum word word_of(const struct td_fit *fit, size_t i, size_t k)
{
    bool agrees = fit->list[k].by_values <= TD_WITHIN || (is_part(match_at(fit, i)) && resembles(fit, k));
    return agrees ? FOR : AGAINST;
}

/* Behind the rotary embedding, by its name or because no role names it. */
static bool is_behind_rotation(const struct td_item *item)
{
    return item->role == TD_ROLE_ATTN_Q_ROPE || item->role == TD_ROLE_ATTN_K_ROPE ||
           (item->role == TD_ROLE_NONE && !item->parameter);
}

/* Two tensors of the layer behind the rotary embedding agree in rotary order: the embedding expected it, and
 * their product is the same in any order. */
static bool is_rotated_so(const struct td_fit *fit, size_t i)
{
    int agreeing = 0;
    for (size_t k = 0; k < fit->matches->count && fit->list[i].layout->rotary; k++) {
        const struct td_match *m = match_at(fit, k);
        agreeing += td_fitting_measured(&fit->list[k]) && m->a->layer == match_at(fit, i)->a->layer &&
                    is_behind_rotation(m->a) && fit->list[k].layout->rotary &&
                    fit->list[k].by_values <= TD_WITHIN;
    }
    return agreeing > 1;
}

/* Of those that are computed from pair i in its layer. */
static enum word ask(const struct td_fit *fit, size_t i)
{
    const struct td_match *m = match_at(fit, i);
    if (is_rotated_so(fit, i))
        return FOR;
    enum lane lane = lane_of(m, lane_into);
    enum word said = SILENT;
    size_t nearest = i;
    for (size_t k = 0; k < fit->matches->count && said != FOR; k++) {
        if (!may_speak(fit, i, k))
            continue;
        const struct td_match *other = match_at(fit, k);
        if ((lane != LANE_NONE && lane_of(other, lane_out_of) == lane) || goes_on(m, other)) {
            enum word word = word_of(fit, i, k);
            said = word > said ? word : said;
        } else if (td_feeds(m->a, other->a) && lane_of(other, lane_into) == LANE_NONE &&
                   (nearest == i || other->a->order < match_at(fit, nearest)->a->order)) {
            nearest = k;
        }
    }
    return said == SILENT && nearest != i ? word_of(fit, i, nearest) : said;
}

/* --- all layers ----------------------------------------------------------------------------------------- */

static void refuse(const struct td_fit *fit, size_t i)
{
    const struct td_work work = {fit->work->pool, fit->work->job, &fit->arenas[i]};
    struct td_fitting *f = &fit->list[i];
    f->other = f->layout;
    f->layout = f->instead;
    td_fitting_measure(f, match_at(fit, i), fit->rules, &work);
}

/* Backwards, so that a chain of stages in one other order (query, query_final) is judged from its end. */
void td_fit_doubted(const struct td_fit *fit)
{
    for (size_t i = fit->matches->count; i-- > 0;) {
        const struct td_layout *shared = fit->list[i].layout;
        enum word said = SILENT;
        bool agrees = false;
        if (!fit->list[i].instead || fit->list[i].layout == fit->list[i].instead)
            continue;
        for (size_t k = 0; k <= i && said != FOR; k++)
            if (fit->list[k].layout == shared && td_fitting_measured(&fit->list[k])) {
                enum word word = ask(fit, k);
                said = word > said ? word : said;
                agrees = agrees || fit->list[k].by_values <= TD_WITHIN;
            }
        bool refused = said == AGAINST && agrees;
        for (size_t k = 0; k <= i; k++)
            if (fit->list[k].layout == shared) {
                if (refused)
                    refuse(fit, k);
                fit->list[k].instead = NULL; /* settled, for all layers */
            }
    }
}
