/* api_diff.c: the public functions of tdbg.h that compare.
 *
 * A caller wants the result and not the inputs: what is said about them is written at once, as the JSON that
 * scripts read and in words, and both inputs are closed before the handle is given out.
 */
#include "report/diff_json.h"
#include "report/diff_words.h"
#include "session/diff_setup.h"

#include <stdlib.h>

struct tdbg_diff {
    struct td_buffer json, words;
};

/* The defaults of `tdbg diff` where nothing is given. */
static struct td_diff_setup setup_of(const struct tdbg_diff_options *o)
{
    struct td_diff_setup setup = TD_DIFF_SETUP;
    if (!o)
        return setup;
    setup.match = o->match;
    setup.pairs = o->pairs;
    setup.policy = o->policy;
    setup.reference = o->reference;
    setup.layout = o->layout;
    setup.names = o->names;
    if (o->threshold != 0)
        setup.threshold = o->threshold;
    if (o->rtol)
        setup.rtol = *o->rtol;
    if (o->atol)
        setup.atol = *o->atol;
    if (o->coverage)
        setup.coverage = *o->coverage;
    if (o->top)
        setup.top = o->top > 0 ? o->top : 0;
    return setup;
}

static tdbg_status check_numbers(const struct tdbg_diff_options *o, struct tdbg_error *error)
{
    if (o && ((o->rtol && !(*o->rtol >= 0)) || (o->atol && !(*o->atol >= 0))))
        return td_fail(error, TDBG_MISUSE, "a tolerance is zero or more");
    if (o && o->coverage && !(*o->coverage >= 0))
        return td_fail(error, TDBG_MISUSE, "a coverage of %g; it is a share, from 0 to 1", *o->coverage);
    if (o && !(o->threshold >= 0))
        return td_fail(error, TDBG_MISUSE, "a threshold of %g; similarity lies between 0 and 1",
                       o->threshold);
    return TDBG_OK;
}

static tdbg_status describe(tdbg_diff *handle, const struct td_diff *diff, struct tdbg_error *error)
{
    struct td_json json;
    td_json_to_buffer(&json, &handle->json);
    td_diff_json(&json, diff, NULL);
    td_json_newline(&json);
    if (!td_json_finish(&json))
        return td_fail(error, TDBG_LIMIT, "more to say about this comparison than memory holds");
    td_diff_summarise(&handle->words, diff);
    td_buffer_puts(&handle->words, "\n");
    td_diff_conclude(&handle->words, diff);
    return handle->words.failed ? td_fail_nomem(error) : TDBG_OK;
}

static tdbg_status compare(tdbg_diff *handle, const char *a, const char *b,
                           const struct tdbg_diff_options *options, struct tdbg_error *error)
{
    struct td_diff_setup setup = setup_of(options);
    struct td_pool *pool = NULL;
    struct td_diff *diff = NULL;
    TD_TRY(check_numbers(options, error));
    TD_TRY(td_pool_open(&pool, 0, error));
    tdbg_status status = td_diff_run(&diff, a, b, &setup, &(struct td_work){.pool = pool}, error);
    if (status == TDBG_OK)
        status = describe(handle, diff, error);
    td_diff_close(&diff);
    td_pool_close(&pool);
    return status;
}

tdbg_status tdbg_diff_open(tdbg_diff **out, const char *a, const char *b,
                           const struct tdbg_diff_options *options, struct tdbg_error *error)
{
    if (!a || !b)
        return td_fail(error, TDBG_MISUSE, "no path of %s", a ? "B" : "A");
    tdbg_diff *handle = calloc(1, sizeof *handle);
    if (!handle)
        return td_fail_nomem(error);
    td_buffer_init(&handle->json, SIZE_MAX);
    td_buffer_init(&handle->words, SIZE_MAX);
    tdbg_status status = compare(handle, a, b, options, error);
    if (status == TDBG_OK)
        *out = handle;
    else
        tdbg_diff_close(&handle);
    return status;
}

void tdbg_diff_close(tdbg_diff **diff)
{
    if (!diff || !*diff)
        return;
    td_buffer_release(&(*diff)->json);
    td_buffer_release(&(*diff)->words);
    free(*diff);
    *diff = NULL;
}

const char *tdbg_diff_json(const tdbg_diff *diff)
{
    return td_buffer_text(&diff->json);
}

const char *tdbg_diff_words(const tdbg_diff *diff)
{
    return td_buffer_text(&diff->words);
}
