/* diff_setup.c: see diff_setup.h. */
#include "session/diff_setup.h"

#include "compare/judge/coverage.h"
#include "compare/layout/layout_text.h"
#include "session/names_file.h"
#include "session/pairs_file.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

tdbg_status td_diff_setup_policy(struct td_policy *out, const struct td_diff_setup *s,
                                 struct tdbg_error *error)
{
    *out = (struct td_policy){.kind = TD_POLICY_NOISE};
    if (s->policy && strcmp(s->policy, "strict") == 0)
        out->kind = TD_POLICY_STRICT;
    else if (s->policy && strcmp(s->policy, "noise") != 0)
        return td_fail(error, TDBG_MISUSE, "no policy '%s'; there are noise and strict", s->policy);
    bool tolerance = s->rtol >= 0 || s->atol >= 0;
    if (tolerance + (s->policy != NULL) + (s->reference != NULL) > 1)
        return td_fail(error, TDBG_MISUSE, "one rule at a time: a policy, rtol and atol, or a reference");
    if (tolerance) {
        out->kind = TD_POLICY_TOLERANCE;
        out->tolerance = (struct td_tolerance){s->rtol >= 0 ? s->rtol : 0, s->atol >= 0 ? s->atol : 0};
    } else if (s->reference) {
        out->kind = TD_POLICY_REFERENCE;
    }
    return TDBG_OK;
}

tdbg_status td_diff_setup_check(const struct td_diff_setup *setup, struct tdbg_error *error)
{
    struct td_policy policy;
    TD_TRY(td_diff_setup_policy(&policy, setup, error));
    if (setup->threshold > 1)
        return td_fail(error, TDBG_MISUSE, "a threshold of %g; similarity lies between 0 and 1",
                       setup->threshold);
    if (setup->threshold == 0)
        return td_fail(error, TDBG_MISUSE, "a threshold of 0, at which all names are alike; it is above 0");
    if (setup->coverage > 1)
        return td_fail(error, TDBG_MISUSE, "a coverage of %g; it is a share, from 0 to 1", setup->coverage);
    if (setup->top > TD_MOST_TOP)
        return td_fail(error, TDBG_MISUSE, "%" PRId64 " worst elements of a pair; at most %d are kept",
                       setup->top, TD_MOST_TOP);
    if (setup->layout && td_layout_text_axes(setup->layout) < 0)
        return td_fail(error, TDBG_MISUSE, "'%s' is no layout; write it as 'b h t d -> t h d'",
                       setup->layout);
    return TDBG_OK;
}

static tdbg_status read_files(const struct td_diff_setup *setup, struct td_pairs *pairs,
                              struct td_names *names, struct td_match_options *out, struct tdbg_error *error)
{
    if (setup->pairs) {
        TD_TRY(td_pairs_read(pairs, setup->pairs, error));
        out->manual = pairs->list;
        out->manual_count = pairs->count;
    }
    if (setup->names) {
        TD_TRY(td_names_read(names, setup->names, error));
        out->names = names->list;
        out->name_count = names->count;
    }
    return TDBG_OK;
}

tdbg_status td_diff_run(struct td_diff **out, const char *a, const char *b, const struct td_diff_setup *setup,
                        const struct td_work *work, struct tdbg_error *error)
{
    TD_TRY(td_diff_setup_check(setup, error));
    struct td_pairs pairs = {0};
    struct td_names names = {0};
    struct td_diff_options options = {
        .compare = {.match = {.strategy = setup->match,
                              .threshold = fmax(setup->threshold, 0),
                              .manual = setup->manual,
                              .manual_count = setup->manual_count,
                              .names = setup->rules,
                              .name_count = setup->rule_count},
                    .layout = setup->layout,
                    .coverage = setup->coverage >= 0 ? setup->coverage : TD_COVERAGE_DEFAULT,
                    .top = (int)setup->top},
        .reference = setup->reference,
    };
    TD_TRY(td_diff_setup_policy(&options.compare.policy, setup, error));
    tdbg_status status = read_files(setup, &pairs, &names, &options.compare.match, error);
    if (status == TDBG_OK)
        status = td_diff_open(out, a, b, &options, work, error);
    td_names_release(&names);
    td_pairs_release(&pairs);
    return status;
}
