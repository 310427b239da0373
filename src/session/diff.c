/* diff.c: see diff.h. Opens both inputs, asks the user's program which tensors belong together, has them
 * compared, and makes sure that no file changed meanwhile. How a comparison goes is told in
 * compare/compare.h.
 */
#include "session/diff.h"

#include "session/match_program.h"

#include <stdlib.h>
#include <string.h>

/* --- opening -------------------------------------------------------------------------------------------- */

struct opening {
    const char *paths[2];
    struct td_choice *choices[2];
    struct td_job *job;
    atomic_bool stopped; /* by a side that failed */
    tdbg_status status[2];
    struct tdbg_error errors[2];
};

/* When one side fails, the other need not go on. */
static void open_one(void *context, uint64_t i)
{
    struct opening *o = context;
    o->status[i] = td_choice_open(o->choices[i], o->paths[i], o->job, &o->errors[i]);
    if (o->status[i] != TDBG_OK && o->job && !atomic_exchange(&o->job->cancelled, true))
        atomic_store(&o->stopped, true);
}

/* Side by side: it takes long where many files are listed or an archive is unpacked. */
static tdbg_status open_sides(struct td_diff *diff, const char *path_a, const char *path_b,
                              const struct td_work *work, struct tdbg_error *error)
{
    struct opening o = {{path_a, path_b}, {&diff->choice_a, &diff->choice_b}, .job = work->job};
    td_pool_run(work->pool, 2, open_one, &o);
    diff->a = diff->choice_a.input;
    diff->b = diff->choice_b.input;
    if (atomic_load(&o.stopped))
        atomic_store(&work->job->cancelled, false);
    bool b_failed = o.status[0] == TDBG_OK || (o.status[0] == TDBG_CANCELLED && o.status[1] != TDBG_OK);
    if (o.status[b_failed] != TDBG_OK && error)
        *error = o.errors[b_failed];
    return o.status[b_failed];
}

/* A third input, open for as long as the comparison runs. */
struct reference {
    struct td_input *input; /* NULL: none was asked for */
    struct td_side side;
};

static tdbg_status reference_open(struct reference *out, const char *path, struct td_job *job,
                                  struct tdbg_error *error)
{
    if (!path)
        return TDBG_OK;
    tdbg_status status = td_input_open(&out->input, path, job, error);
    if (status != TDBG_OK) {
        td_error_prefix(error, path);
        return status;
    }
    return td_side_of_input(&out->side, out->input, error);
}

static void reference_close(struct reference *reference)
{
    if (reference->input)
        td_side_release(&reference->side);
    td_input_close(&reference->input);
}

/* --- comparing ------------------------------------------------------------------------------------------ */

/* The user's pairs come first, then what his program answers, then the strategies. */
static tdbg_status join_pairs(struct td_name_pair **out, const struct td_match_options *given,
                              const struct td_pairs *answered, struct tdbg_error *error)
{
    struct td_name_pair *all = calloc(given->manual_count + answered->count + 1, sizeof *all);
    if (!all)
        return td_fail_nomem(error);
    if (given->manual_count)
        memcpy(all, given->manual, given->manual_count * sizeof *all);
    if (answered->count)
        memcpy(all + given->manual_count, answered->list, answered->count * sizeof *all);
    *out = all;
    return TDBG_OK;
}

static tdbg_status compare_with(struct td_diff *diff, const struct td_diff_options *options,
                                const struct td_pairs *answered, const struct td_work *work,
                                struct tdbg_error *error)
{
    struct td_compare_options compare = options->compare;
    struct td_name_pair *all = NULL;
    struct reference reference = {0};
    TD_TRY(join_pairs(&all, &options->compare.match, answered, error));
    compare.match.manual = all;
    compare.match.manual_count += answered->count;
    tdbg_status status = reference_open(&reference, options->reference, work->job, error);
    if (status == TDBG_OK)
        status = td_compare(&diff->result, &diff->side_a, &diff->side_b,
                            reference.input ? &reference.side : NULL, &compare, work, error);
    reference_close(&reference);
    free(all);
    return status;
}

static tdbg_status compare(struct td_diff *diff, const struct td_diff_options *options,
                           const struct td_work *work, struct tdbg_error *error)
{
    struct td_pairs answered = {0};
    TD_TRY(td_side_of_choice(&diff->side_a, &diff->choice_a, error));
    TD_TRY(td_side_of_choice(&diff->side_b, &diff->choice_b, error));
    TD_TRY(td_match_chain_program(&answered, options->compare.match.strategy, &diff->side_a, &diff->side_b,
                                  error));
    tdbg_status status = compare_with(diff, options, &answered, work, error);
    td_pairs_release(&answered);
    return status;
}

/* A file that was cut short under way has left zeros in anything that was computed since. */
static tdbg_status verify(const struct td_diff *diff, struct tdbg_error *error)
{
    const struct td_side *sides[] = {&diff->side_a, &diff->side_b};
    const struct td_input *inputs[] = {diff->a, diff->b};
    for (int s = 0; s < 2; s++)
        for (size_t i = 0; i < sides[s]->count; i++) {
            tdbg_status status = td_item_verify(&sides[s]->items[i], error);
            if (status != TDBG_OK) {
                td_error_prefix(error, sides[s]->items[i].name);
                td_error_prefix(error, td_input_path(inputs[s]));
                return status;
            }
        }
    return TDBG_OK;
}

/* --- the whole ------------------------------------------------------------------------------------------ */

static tdbg_status diff_make(struct td_diff *diff, const char *path_a, const char *path_b,
                             const struct td_diff_options *options, const struct td_work *work,
                             struct tdbg_error *error)
{
    diff->policy = options->compare.policy;
    diff->reference = options->reference ? strdup(options->reference) : NULL;
    if (options->reference && !diff->reference)
        return td_fail_nomem(error);
    TD_TRY(open_sides(diff, path_a, path_b, work, error));
    TD_TRY(compare(diff, options, work, error));
    return verify(diff, error);
}

tdbg_status td_diff_open(struct td_diff **out, const char *path_a, const char *path_b,
                         const struct td_diff_options *options, const struct td_work *work,
                         struct tdbg_error *error)
{
    struct td_diff *diff = calloc(1, sizeof *diff);
    if (!diff)
        return td_fail_nomem(error);
    tdbg_status status = diff_make(diff, path_a, path_b, options, work, error);
    if (status == TDBG_OK)
        *out = diff;
    else
        td_diff_close(&diff);
    return status;
}

void td_diff_close(struct td_diff **diff)
{
    if (!*diff)
        return;
    td_comparison_release(&(*diff)->result);
    td_side_release(&(*diff)->side_a);
    td_side_release(&(*diff)->side_b);
    td_choice_close(&(*diff)->choice_a);
    td_choice_close(&(*diff)->choice_b);
    free((*diff)->reference);
    free(*diff);
    *diff = NULL;
}
