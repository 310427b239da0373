/* profile_compare_json.c: see profile_compare_json.h. */
#include "report/profile_compare_json.h"

#include <math.h>

static void write_number(struct td_json *j, const char *key, double value)
{
    td_json_key(j, key);
    if (isnan(value))
        td_json_null(j);
    else
        td_json_number(j, value);
}

static void write_pair(struct td_json *j, const struct td_profile_pair *pair, const struct td_profile *a,
                       const struct td_profile *b)
{
    bool in_a = pair->a != TD_PROFILE_NONE, in_b = pair->b != TD_PROFILE_NONE;
    const struct td_shift *s = &pair->shift;
    char path[8192];
    td_json_begin_object(j);
    td_json_field_string(j, "path",
                         in_a ? td_profile_path(a, pair->a, path, sizeof path)
                              : td_profile_path(b, pair->b, path, sizeof path));
    td_json_field_string(j, "change", td_change_name(pair->change));
    if (in_a)
        td_json_field_int(j, "other_total_ns", a->nodes[pair->a].total_ns);
    if (in_b)
        td_json_field_int(j, "total_ns", b->nodes[pair->b].total_ns);
    if (in_a && in_b) {
        td_json_field_uint(j, "other_steps", s->count_a);
        td_json_field_uint(j, "steps", s->count_b);
        write_number(j, "other_p50_ns", s->median_a);
        write_number(j, "p50_ns", s->median_b);
        write_number(j, "shift_ns", s->shift);
        write_number(j, "low_ns", s->low);
        write_number(j, "high_ns", s->high);
        write_number(j, "p", s->p);
    }
    td_json_end_object(j);
}

void td_profile_comparison_json(struct td_json *j, const struct td_profile_comparison *comparison,
                                const struct td_profile *a, const struct td_profile *b)
{
    td_json_key(j, "summary");
    td_json_begin_object(j);
    td_json_field_uint(j, "slower", comparison->slower);
    td_json_field_uint(j, "faster", comparison->faster);
    td_json_field_uint(j, "compared", comparison->tested);
    td_json_end_object(j);
    td_json_key(j, "scopes"); /* the first, with an empty path, is the whole step */
    td_json_begin_array(j);
    for (size_t i = 0; i < comparison->count; i++)
        write_pair(j, &comparison->pairs[i], a, b);
    td_json_end_array(j);
}

void td_profile_stragglers_json(struct td_json *j, const struct td_profile *const *profiles, const int *ranks,
                                const struct td_straggler *stragglers, size_t count)
{
    char path[8192];
    td_json_key(j, "stragglers");
    td_json_begin_array(j);
    for (size_t i = 0; i < count; i++) {
        const struct td_straggler *s = &stragglers[i];
        td_json_begin_object(j);
        td_json_field_int(j, "rank", ranks[s->rank]);
        td_json_field_string(j, "path", td_profile_path(profiles[s->rank], s->node, path, sizeof path));
        td_json_field_number(j, "p50_ns", s->own);
        td_json_field_number(j, "others_p50_ns", s->others);
        td_json_end_object(j);
    }
    td_json_end_array(j);
}
