/* check_json.c: see check_json.h. */
#include "report/check_json.h"

void td_finding_json(struct td_json *j, const struct td_finding *f)
{
    char words[160];
    td_json_begin_object(j);
    td_json_field_string(j, "rule", f->rule->name);
    td_json_field_string(j, "kind", f->scalar ? "scalar" : "tensor");
    td_json_field_string(j, "name", f->name);
    td_json_key(j, "step");
    if (f->under_way)
        td_json_null(j);
    else
        td_json_int(j, f->step);
    td_json_key(j, "ordinal");
    if (f->ordinal < 0)
        td_json_null(j);
    else
        td_json_int(j, f->ordinal);
    td_json_field_int(j, "time_ns", f->time_ns);
    td_json_field_number(j, "number", f->number);
    td_json_field_number(j, "threshold", f->threshold);
    td_json_field_string(j, "breaks", f->rule->below ? "below" : "above");
    td_json_field_number(j, "worst", f->worst);
    td_json_field_uint(j, "times", f->times);
    td_json_field_string(j, "what", f->rule->what);
    td_json_field_string(j, "text", td_finding_words(f, words, sizeof words));
    td_json_end_object(j);
}

void td_findings_json(struct td_json *j, struct td_checker *checker)
{
    td_json_begin_array(j);
    for (size_t i = 0; i < td_checker_count(checker); i++)
        td_finding_json(j, td_checker_finding(checker, i));
    td_json_end_array(j);
}

void td_rules_json(struct td_json *j, const struct td_rule_setting settings[TD_RULES])
{
    td_json_begin_array(j);
    for (size_t i = 0; i < TD_RULES; i++) {
        td_json_begin_object(j);
        td_json_field_string(j, "name", td_rules[i].name);
        td_json_field_string(j, "what", td_rules[i].what);
        td_json_field_string(j, "measure", td_rules[i].measure);
        td_json_field_string(j, "breaks", td_rules[i].below ? "below" : "above");
        td_json_field_number(j, "threshold", settings[i].threshold);
        td_json_field_int(j, "steps", settings[i].steps);
        td_json_field_bool(j, "disabled", settings[i].disabled);
        td_json_end_object(j);
    }
    td_json_end_array(j);
}

const char *td_finding_words(const struct td_finding *f, char *out, size_t size)
{
    snprintf(out, size, "%s %.4g, %s %.4g", f->rule->measure, f->number, f->rule->below ? "below" : "above",
             f->threshold);
    return out;
}
