/* diff_setup.c: see diff_setup.h. */
#include "session/diff_setup.h"

#include "compare/layout/layout_text.h"
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
    if (setup->top > TD_MOST_TOP)
        return td_fail(error, TDBG_MISUSE, "%" PRId64 " worst elements of a pair; at most %d are kept",
                       setup->top, TD_MOST_TOP);
    if (setup->layout && td_layout_text_axes(setup->layout) < 0)
        return td_fail(error, TDBG_MISUSE, "'%s' is no layout; write it as 'b h t d -> t h d'",
                       setup->layout);
    return TDBG_OK;
}

tdbg_status td_diff_run(struct td_diff **out, const char *a, const char *b, const struct td_diff_setup *setup,
                        const struct td_work *work, struct tdbg_error *error)
{
    TD_TRY(td_diff_setup_check(setup, error));
    struct td_pairs pairs = {0};
    struct td_diff_options options = {
        .compare = {.match = {.strategy = setup->match,
                              .threshold = fmax(setup->threshold, 0),
                              .manual = setup->manual,
                              .manual_count = setup->manual_count},
                    .layout = setup->layout,
                    .top = (int)setup->top},
        .reference = setup->reference,
    };
    TD_TRY(td_diff_setup_policy(&options.compare.policy, setup, error));
    if (setup->pairs) {
        TD_TRY(td_pairs_read(&pairs, setup->pairs, error));
        options.compare.match.manual = pairs.list;
        options.compare.match.manual_count = pairs.count;
    }
    tdbg_status status = td_diff_open(out, a, b, &options, work, error);
    td_pairs_release(&pairs);
    return status;
}
