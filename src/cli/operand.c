/* operand.c: see operand.h. */
#include "cli/operand.h"

#include "cli/progress.h"

#include <stdlib.h>

static tdbg_status open_target(struct cli *cli, const char *text, bool single, struct operand *o,
                               struct tdbg_error *error)
{
    TD_TRY(td_target_init(&o->target, text, error));
    struct progress *progress = progress_start(cli, o->target.path, 0);
    tdbg_status status = td_input_open(&o->input, o->target.path, cli->job, error);
    progress_stop(&progress);
    if (status != TDBG_OK || !(single || *o->target.name))
        return status;
    TD_TRY(td_target_resolve(&o->target, o->input, &o->selection, &o->slice, error));
    o->named = true;
    return TDBG_OK;
}

int operand_open(struct cli *cli, const char *text, bool single, struct operand *out)
{
    struct tdbg_error error;
    *out = (struct operand){0};
    if (open_target(cli, text, single, out, &error) == TDBG_OK)
        return EXIT_FINE;
    int code = cli_fail(out->target.path ? out->target.path : text, &error);
    operand_release(out);
    return code;
}

void operand_release(struct operand *o)
{
    if (o->named)
        td_selection_release(&o->selection);
    if (!o->lent)
        td_input_close(&o->input);
    td_target_release(&o->target);
    free(o->slice);
    *o = (struct operand){0};
}

size_t operand_count(const struct operand *o)
{
    return o->named ? 1 : td_input_count(o->input);
}

const struct td_tensor *operand_tensor(const struct operand *o, size_t i)
{
    return o->named ? o->selection.tensor : td_input_tensor(o->input, i);
}

void operands_open(struct cli *cli, const struct args *args, struct operands *out)
{
    *out = (struct operands){.items = calloc((size_t)args->count, sizeof *out->items)};
    if (!out->items) {
        out->status = EXIT_TROUBLE;
        return;
    }
    for (int i = 0; i < args->count && !td_job_cancelled(cli->job); i++) {
        int status = operand_open(cli, args->operands[i], false, &out->items[out->count]);
        if (status == EXIT_FINE)
            out->count++;
        else
            out->status = status;
    }
}

void operands_release(struct operands *o)
{
    for (size_t i = 0; i < o->count; i++)
        operand_release(&o->items[i]);
    free(o->items);
    *o = (struct operands){0};
}
