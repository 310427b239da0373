/* operand.c: see operand.h. */
#include "cli/operand.h"

#include <stdlib.h>

int operand_open(struct cli *cli, const char *text, bool single, struct operand *out)
{
    struct operand o = {0};
    struct tdbg_error error;
    tdbg_status status = td_target_init(&o.target, text, &error);
    if (status == TDBG_OK)
        status = td_input_open(&o.input, o.target.path, cli->job, &error);
    o.named = status == TDBG_OK && (single || *o.target.name);
    if (o.named)
        status = td_target_resolve(&o.target, o.input, &o.selection, &o.slice, &error);
    if (status == TDBG_OK) {
        *out = o;
        return EXIT_FINE;
    }
    int code = cli_fail(cli, o.target.path ? o.target.path : text, &error);
    operand_release(&o);
    return code;
}

void operand_release(struct operand *o)
{
    td_input_close(&o->input);
    td_target_release(&o->target);
    free(o->slice);
    o->slice = NULL;
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
