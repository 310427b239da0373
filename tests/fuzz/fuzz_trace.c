/* fuzz_trace.c: any bytes as a trace, plain or compressed. Whatever comes out, self times add up. */
#include "analyse/profile_findings.h"
#include "analyse/trace.h"

#include <stdlib.h>

static void check(const struct td_profile *p)
{
    int64_t sum = 0;
    for (size_t i = 1; i < p->node_count; i++) {
        const struct td_profile_node *n = &p->nodes[i];
        if (n->self_ns < 0 || n->total_ns < n->self_ns || n->parent >= i)
            abort();
        if (!n->device && __builtin_add_overflow(sum, n->self_ns, &sum))
            return;
    }
    if (sum != p->host_ns)
        abort();
}

static tdbg_status profile(struct td_profile *p, struct td_trace_text *text, struct tdbg_error *error)
{
    struct td_trace_facts facts;
    struct td_findings findings;
    TD_TRY(td_trace_profile(p, text, &facts, error));
    TD_TRY(td_profile_finish(p, error));
    TD_TRY(td_profile_find_findings(p, &findings, error));
    check(p);
    return TDBG_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct td_trace_text text;
    struct td_profile p;
    struct tdbg_error error;
    if (td_trace_text_memory(&text, data, size, &error) != TDBG_OK)
        return 0;
    if (td_profile_init(&p, &error) == TDBG_OK) {
        if (profile(&p, &text, &error) != TDBG_OK && error.status == TDBG_OK)
            abort();
        td_profile_release(&p);
    }
    td_trace_text_close(&text);
    return 0;
}
