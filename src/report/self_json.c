/* self_json.c: see self_json.h. */
#include "report/self_json.h"

void td_self_json_begin(struct td_json *j, const struct td_self *self)
{
    td_json_begin_object(j);
    td_json_field_int(j, "version", 1);
    td_input_json(j, "a", td_self_input(self));
    td_input_json(j, "b", td_self_input(self));
    td_policy_json(j, td_self_policy(self), NULL);
    td_json_key(j, "first_divergence");
    td_json_null(j);
    td_json_key(j, "pairs");
    td_json_begin_array(j);
}

void td_self_json_end(struct td_json *j, const struct td_self *self, const struct td_summary *summary,
                      bool complete)
{
    td_json_end_array(j);
    struct td_summary all = *summary; /* everything is its own partner */
    all.coverage_a = all.coverage_b = 1;
    all.enough = true;
    td_summary_json(j, &all);
    td_json_key(j, "self");
    td_json_begin_object(j);
    td_json_field_uint(j, "total", td_self_total(self));
    td_json_field_uint(j, "unlike", td_self_unlike(self));
    td_json_field_bool(j, "complete", complete);
    td_json_end_object(j);
    td_json_key(j, "skipped");
    td_json_begin_array(j);
    td_skips_json(j, td_self_input(self));
    td_json_end_array(j);
    td_json_end_object(j);
}
