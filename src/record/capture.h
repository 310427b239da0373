/* capture.h: what is kept of which tensor: rules by pattern, step and kind.
 *
 *     layers.*.output@every:10=full; *.grad=stats; embed*=slice:0,:16; *@0:100=sketch
 *
 * "PATTERN[@STEPS]=KIND" separated by ";" or newlines; the first rule that fits decides, none keeps nothing.
 * Patterns are those of base/pattern.h. STEPS is FIRST:LAST:STRIDE (each may be missing, LAST counts), a
 * single number, or every:N.
 */
#ifndef TD_RECORD_CAPTURE_H
#define TD_RECORD_CAPTURE_H

#include "base/status.h"
#include "record/tree.h"
#include "store/run_store.h"

enum { TD_MAX_RULES = 64 };

struct td_rule {
    const char *pattern, *slice; /* slice: of TD_KEEP_SLICE */
    int64_t first, last, stride;
    enum td_keep keep;
};

/* Immutable once made. `older` is what it took the place of: a thread may still be reading that. */
struct td_capture {
    struct td_capture *older;
    uint32_t generation; /* from 1 */
    int count;
    struct td_rule rules[TD_MAX_RULES];
    char *text;   /* as it was given */
    char *pieces; /* what the rules point into */
};

TD_CHECK tdbg_status td_capture_parse(struct td_capture **out, const char *text, struct td_capture *older,
                                      struct tdbg_error *error);

/* With everything older. */
void td_capture_free(struct td_capture *capture);

/* The rule for the tensor of this name at this step, or NULL. What fits a name is remembered in its node. */
const struct td_rule *td_capture_rule(const struct td_capture *capture, struct td_node *name, int64_t step);

#endif
