/* diff_json.c: see diff_json.h. */
#include "report/diff_json.h"

#include "compare/judge/between.h"

#include <math.h>

void td_input_json(struct td_json *j, const char *key, const struct td_input *input)
{
    td_json_key(j, key);
    td_json_begin_object(j);
    td_json_field_string(j, "path", td_input_path(input));
    td_json_field_uint(j, "tensors", td_input_count(input));
    td_json_end_object(j);
}

void td_summary_json(struct td_json *j, const struct td_summary *summary)
{
    td_json_key(j, "summary");
    td_summary_counts_json(j, summary);
}

void td_summary_counts_json(struct td_json *j, const struct td_summary *s)
{
    td_json_begin_object(j);
    td_json_field_uint(j, "pairs", s->pairs);
    td_json_field_uint(j, "identical", s->identical);
    td_json_field_uint(j, "within", s->within);
    td_json_field_uint(j, "diverged", s->diverged);
    td_json_field_uint(j, "errors", s->errors);
    td_json_field_uint(j, "only_a", s->only_a);
    td_json_field_uint(j, "only_b", s->only_b);
    td_json_key(j, "coverage");
    td_json_begin_object(j);
    td_json_field_number(j, "a", s->coverage_a);
    td_json_field_number(j, "b", s->coverage_b);
    td_json_end_object(j);
    td_json_field_bool(j, "enough", s->enough);
    td_json_end_object(j);
}

void td_policy_json(struct td_json *j, const struct td_policy *policy, const char *reference)
{
    bool given = policy->kind == TD_POLICY_TOLERANCE;
    td_json_key(j, "policy");
    td_json_begin_object(j);
    td_json_field_string(j, "kind", td_policy_name(policy->kind));
    td_json_key(j, "rtol");
    given ? td_json_number(j, policy->tolerance.rtol) : td_json_null(j);
    td_json_key(j, "atol");
    given ? td_json_number(j, policy->tolerance.atol) : td_json_null(j);
    td_json_field_string(j, "reference", reference);
    td_json_end_object(j);
}

static void put_place(struct td_json *j, const struct td_pair *p, uint64_t index)
{
    td_json_field_uint(j, "index", index);
    td_json_key(j, "layer");
    p->layer >= 0 ? td_json_int(j, p->layer) : td_json_null(j);
    td_json_field_string(j, "stage", p->stage);
    td_json_field_string(j, "name", p->name);
}

void td_diagnosis_json(struct td_json *j, const struct td_diagnosis *d)
{
    td_json_key(j, "diagnosis");
    td_json_begin_array(j);
    for (int i = 0; d && i < d->count; i++) {
        td_json_begin_object(j);
        td_json_field_string(j, "kind", td_mistake_name(d->list[i].kind));
        td_json_field_number(j, "confidence", d->list[i].confidence);
        td_json_field_string(j, "detail", d->list[i].detail);
        td_json_end_object(j);
    }
    td_json_end_array(j);
}

void td_item_json(struct td_json *j, const char *key, const struct td_item *item)
{
    td_json_key(j, key);
    if (!item) {
        td_json_null(j);
        return;
    }
    const struct td_tensor *t = item->parts[0];
    td_json_begin_object(j);
    td_json_field_string(j, "name", item->name);
    td_json_field_string(j, "dtype", td_dtype_name(t->dtype));
    td_json_key(j, "shape");
    td_json_ints(j, t->shape.size, (size_t)t->shape.ndim);
    if (item->part_count > 1)
        td_json_field_int(j, item->experts == TD_EXPERTS_JOINED ? "experts" : "shards", item->part_count);
    td_json_end_object(j);
}

static void put_steps(struct td_json *j, char side, const struct td_steps *steps)
{
    for (int i = 0; i < steps->count; i++) {
        char text[320];
        td_step_print(text, sizeof text, side, &steps->step[i]);
        td_json_string(j, text);
    }
}

void td_layout_json(struct td_json *j, const struct td_pair *p)
{
    td_json_key(j, "layout");
    if (!td_pair_measured(p)) {
        td_json_null(j);
        return;
    }
    td_json_begin_object(j);
    td_json_key(j, "shape");
    td_json_ints(j, p->layout->shape.size, (size_t)p->layout->shape.ndim);
    td_json_key(j, "steps");
    td_json_begin_array(j);
    put_steps(j, 'a', &p->layout->a);
    put_steps(j, 'b', &p->layout->b);
    td_json_end_array(j);
    td_json_field_bool(j, "by_value", p->layout->by_value);
    if (p->outcome.repaired)
        td_json_field_bool(j, "repaired", true);
    td_json_end_object(j);
}

void td_coordinates_json(struct td_json *j, const struct td_shape *shape, int64_t index)
{
    int64_t at[TD_MAX_DIMS];
    for (int i = shape->ndim - 1; i >= 0; i--) {
        at[i] = index % shape->size[i];
        index /= shape->size[i];
    }
    td_json_ints(j, at, (size_t)shape->ndim);
}

static void put_stats(struct td_json *j, const char *key, const struct tdbg_stats *s)
{
    td_json_key(j, key);
    td_json_begin_object(j);
    td_json_field_number(j, "mean", s->mean);
    td_json_field_number(j, "std", s->std);
    td_json_field_number(j, "min", s->min);
    td_json_field_number(j, "max", s->max);
    td_json_field_number(j, "norm", s->norm);
    td_json_field_uint(j, "zeros", s->zeros);
    td_json_end_object(j);
}

void td_metrics_json(struct td_json *j, const struct td_pair *p)
{
    const struct td_metrics *m = &p->outcome.metrics;
    td_json_key(j, "metrics");
    if (!td_pair_measured(p)) {
        td_json_null(j);
        return;
    }
    const struct {
        const char *key;
        double value;
    } numbers[] = {{"max_abs", m->max_abs},   {"mean_abs", m->mean_abs}, {"max_rel", m->max_rel},
                   {"mean_rel", m->mean_rel}, {"mse", m->mse},           {"rmse", m->rmse},
                   {"cosine", m->cosine},     {"rel_l2", m->rel_l2},     {"snr_db", m->snr_db}};
    const struct {
        const char *key;
        uint64_t value;
    } counts[] = {{"beyond", p->outcome.beyond}, {"count", m->count}, {"nan_a", m->nan_a},
                  {"nan_b", m->nan_b},           {"inf_a", m->inf_a}, {"inf_b", m->inf_b}};
    td_json_begin_object(j);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        td_json_field_number(j, numbers[i].key, numbers[i].value);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        td_json_field_uint(j, counts[i].key, counts[i].value);
    td_json_key(j, "argmax");
    if (m->argmax >= 0) {
        td_coordinates_json(j, &p->layout->shape, m->argmax);
        td_json_field_number(j, "argmax_a", m->argmax_a);
        td_json_field_number(j, "argmax_b", m->argmax_b);
    } else {
        td_json_null(j);
        td_json_key(j, "argmax_a");
        td_json_null(j);
        td_json_key(j, "argmax_b");
        td_json_null(j);
    }
    td_json_key(j, "max_ulp");
    isnan(m->max_ulp) ? td_json_null(j) : td_json_number(j, m->max_ulp);
    put_stats(j, "a", &m->a);
    put_stats(j, "b", &m->b);
    td_json_end_object(j);
}

static void put_worst(struct td_json *j, const struct td_pair *p)
{
    td_json_key(j, "worst");
    td_json_begin_array(j);
    for (int i = 0; i < p->outcome.worst_count; i++) {
        td_json_begin_object(j);
        td_json_key(j, "index");
        td_coordinates_json(j, &p->layout->shape, p->outcome.worst[i].index);
        td_json_field_number(j, "a", p->outcome.worst[i].a);
        td_json_field_number(j, "b", p->outcome.worst[i].b);
        td_json_field_number(j, "difference", p->outcome.worst[i].difference);
        td_json_end_object(j);
    }
    td_json_end_array(j);
}

/* For each axis the share of the squared error that each of its indices holds. */
static void put_profile(struct td_json *j, const struct td_pair *p)
{
    const double *at = p->outcome.profile;
    td_json_key(j, "profile");
    td_json_begin_array(j);
    for (int axis = 0; axis < p->layout->shape.ndim; axis++) {
        int64_t size = p->layout->shape.size[axis];
        double total = 0;
        for (int64_t i = 0; i < size; i++)
            total += at[i];
        td_json_begin_array(j);
        for (int64_t i = 0; i < size; i++)
            td_json_number(j, total > 0 ? at[i] / total : 0);
        td_json_end_array(j);
        at += size;
    }
    td_json_end_array(j);
}

static void put_names(struct td_json *j, const char *key, const struct td_aliases *names)
{
    td_json_key(j, key);
    td_json_begin_array(j);
    for (size_t i = 0; names && names->items && names->count > 1 && i < names->count; i++)
        td_json_string(j, names->items[i]->name);
    td_json_end_array(j);
}

void td_pairing_json(struct td_json *j, const struct td_pair *p)
{
    const struct td_match *m = p->match;
    td_json_field_string(j, "strategy", td_strategy_name(p->strategy));
    td_json_field_number(j, "sure", !p->a || !p->b ? 0 : m ? m->sure : 1);
    td_json_key(j, "aliases");
    td_json_begin_object(j);
    put_names(j, "a", m ? &m->aliases_a : NULL);
    put_names(j, "b", m ? &m->aliases_b : NULL);
    td_json_end_object(j);
    td_json_field_string(j, "evidence", m ? m->evidence : NULL);
    td_json_key(j, "template");
    if (m && (m->template_a || m->template_b)) {
        td_json_begin_object(j);
        td_json_field_string(j, "a", m->template_a);
        td_json_field_string(j, "b", m->template_b);
        td_json_end_object(j);
    } else {
        td_json_null(j);
    }
}

void td_pair_json(struct td_json *j, const struct td_pair *p, uint64_t index)
{
    static const char *const origins[] = {NULL, "born", "inherited"};
    td_json_begin_object(j);
    put_place(j, p, index);
    td_pairing_json(j, p);
    td_json_field_string(j, "verdict", td_verdict_name(p->outcome.ruling.verdict));
    td_json_field_string(j, "reason", p->outcome.ruling.reason);
    td_item_json(j, "a", p->a);
    td_item_json(j, "b", p->b);
    td_layout_json(j, p);
    td_metrics_json(j, p);
    if (p->outcome.origin)
        td_json_field_string(j, "origin", origins[p->outcome.origin]);
    if (p->outcome.ruling.floor > 0)
        td_json_field_number(j, "floor", p->outcome.ruling.floor);
    if (p->outcome.worst_count)
        put_worst(j, p);
    if (p->outcome.profile)
        put_profile(j, p);
    if (p->outcome.diagnosis)
        td_diagnosis_json(j, p->outcome.diagnosis);
    td_json_end_object(j);
}

void td_skips_json(struct td_json *j, const struct td_input *input)
{
    for (size_t i = 0; i < td_input_skips(input); i++) {
        td_json_begin_object(j);
        td_json_field_string(j, "path", td_input_path(input));
        td_json_field_string(j, "name", td_input_skip(input, i)->name);
        td_json_field_string(j, "reason", td_input_skip(input, i)->reason);
        td_json_end_object(j);
    }
}

static const char *order_name(enum td_order_evidence order)
{
    static const char *const names[] = {
        [TD_ORDER_UNKNOWN] = "unknown", [TD_ORDER_NAMES] = "names",   [TD_ORDER_TIMES] = "times",
        [TD_ORDER_FILE] = "file",       [TD_ORDER_STAGES] = "stages", [TD_ORDER_SIDECAR] = "sidecar",
        [TD_ORDER_RECORDED] = "file",
    };
    return names[order];
}

/* "unpaired_before": {"a": [names], "b": [names], "count": N}: what nobody compared, in front of it. */
static void put_between(struct td_json *j, const struct td_diff *diff)
{
    static const char *const sides[] = {"a", "b"};
    struct td_between between;
    td_between_find(&between, diff->result.pairs, diff->result.first, diff->side_a.order);
    if (between.count[0] + between.count[1] == 0)
        return;
    td_json_key(j, "unpaired_before");
    td_json_begin_object(j);
    for (int s = 0; s < 2; s++) {
        td_json_key(j, sides[s]);
        td_json_begin_array(j);
        for (size_t i = 0; i < between.count[s] && i < TD_BETWEEN_NAMES; i++)
            td_json_string(j, between.names[s][i]);
        td_json_end_array(j);
    }
    td_json_field_uint(j, "count", between.count[0] + between.count[1]);
    td_json_end_object(j);
}

void td_diff_json(struct td_json *j, const struct td_diff *diff, td_pair_filter *filter)
{
    td_json_begin_object(j);
    td_json_field_int(j, "version", 1);
    td_input_json(j, "a", diff->a);
    td_input_json(j, "b", diff->b);
    td_summary_json(j, &diff->result.summary);
    td_policy_json(j, &diff->policy, diff->reference);
    td_json_field_string(j, "order", order_name(diff->side_a.order));
    td_json_key(j, "first_divergence");
    if (diff->result.first) {
        td_json_begin_object(j);
        put_place(j, diff->result.first, (uint64_t)(diff->result.first - diff->result.pairs));
        td_diagnosis_json(j, diff->result.first->outcome.diagnosis);
        put_between(j, diff);
        td_json_end_object(j);
    } else {
        td_json_null(j);
    }
    if (diff->result.matches.layer_offset)
        td_json_field_int(j, "layer_offset", diff->result.matches.layer_offset);
    td_json_key(j, "notes");
    td_json_begin_array(j);
    for (size_t i = 0; i < diff->result.note_count; i++)
        td_json_string(j, diff->result.notes[i]);
    td_json_end_array(j);
    td_json_key(j, "pairs");
    td_json_begin_array(j);
    for (size_t i = 0; i < diff->result.count; i++)
        if (!filter || filter(&diff->result.pairs[i]))
            td_pair_json(j, &diff->result.pairs[i], i);
    td_json_end_array(j);
    td_json_key(j, "skipped");
    td_json_begin_array(j);
    td_skips_json(j, diff->a);
    td_skips_json(j, diff->b);
    td_json_end_array(j);
    td_json_end_object(j);
}
