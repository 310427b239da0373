/* diff_csv.c: see diff_csv.h. Quoting as RFC 4180 has it; numbers read back to the same double. */
#include "report/diff_csv.h"

#include "base/buffer.h"
#include "base/number.h"

#include <string.h>

static void put_text(FILE *out, const char *text)
{
    if (!strpbrk(text, ",\"\r\n")) {
        fputs(text, out);
        return;
    }
    putc('"', out);
    for (; *text; text++) {
        if (*text == '"')
            putc('"', out);
        putc(*text, out);
    }
    putc('"', out);
}

static void put_number(FILE *out, double value)
{
    char text[TD_NUMBER_SIZE];
    td_number_float(text, value, &td_float64);
    fprintf(out, ",%s", text);
}

static void put_shape(FILE *out, const struct td_item *item)
{
    putc(',', out);
    if (!item)
        return;
    const struct td_shape *shape = &item->parts[0]->shape;
    for (int i = 0; i < shape->ndim; i++)
        fprintf(out, "%s%lld", i ? "x" : "", (long long)shape->size[i]);
}

/* The other names of a tensor, one in each line of the cell. */
static void put_aliases(FILE *out, const struct td_aliases *names)
{
    struct td_buffer text;
    td_buffer_init(&text, 1 << 20);
    for (size_t i = 1; names->items && i < names->count; i++)
        td_buffer_printf(&text, "%s%s", i > 1 ? "\n" : "", names->items[i]->name);
    putc(',', out);
    put_text(out, td_buffer_text(&text));
    td_buffer_release(&text);
}

/* What belongs to what, and what says so. Behind the rest: who reads columns by number finds them as before.
 */
static void put_pairing(FILE *out, const struct td_pair *p)
{
    const char *evidence = p->match && p->match->evidence ? p->match->evidence : "";
    const char *const texts[] = {p->a ? p->a->name : "", p->b ? p->b->name : "", evidence};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        putc(',', out);
        put_text(out, texts[i]);
    }
    if (p->match && p->a && p->b)
        put_number(out, p->match->sure);
    else
        putc(',', out);
    static const struct td_aliases none;
    put_aliases(out, p->match ? &p->match->aliases_a : &none);
    put_aliases(out, p->match ? &p->match->aliases_b : &none);
}

static void put_row(FILE *out, const struct td_diff *diff, const struct td_pair *p)
{
    const struct td_metrics *m = &p->outcome.metrics;
    fprintf(out, "%zu,", (size_t)(p - diff->result.pairs));
    if (p->layer >= 0)
        fprintf(out, "%lld", (long long)p->layer);
    const char *const texts[] = {p->stage,
                                 p->name,
                                 td_strategy_name(p->strategy),
                                 td_verdict_name(p->outcome.ruling.verdict),
                                 p->outcome.diagnosis ? td_mistake_name(p->outcome.diagnosis->list[0].kind)
                                                      : "",
                                 p->a ? td_dtype_name(p->a->parts[0]->dtype) : "",
                                 p->b ? td_dtype_name(p->b->parts[0]->dtype) : ""};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        putc(',', out);
        put_text(out, texts[i]);
    }
    put_shape(out, p->a);
    put_shape(out, p->b);
    if (td_pair_measured(p)) {
        const double numbers[] = {m->max_abs, m->mean_abs, m->max_rel, m->mean_rel, m->mse,
                                  m->rmse,    m->cosine,   m->rel_l2,  m->snr_db,   p->outcome.ruling.floor};
        for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
            put_number(out, numbers[i]);
        fprintf(out, ",%llu,%llu,%llu,%llu,%llu,%llu", (unsigned long long)p->outcome.beyond,
                (unsigned long long)m->count, (unsigned long long)m->nan_a, (unsigned long long)m->nan_b,
                (unsigned long long)m->inf_a, (unsigned long long)m->inf_b);
    } else {
        fputs(",,,,,,,,,,,,,,,,", out);
    }
    putc(',', out);
    put_text(out, p->outcome.ruling.reason);
    put_pairing(out, p);
    fputs("\r\n", out);
}

void td_diff_csv(FILE *out, const struct td_diff *diff)
{
    fputs(
        "index,layer,stage,name,strategy,verdict,diagnosis,dtype_a,dtype_b,shape_a,shape_b,max_abs,mean_abs,"
        "max_rel,mean_rel,mse,rmse,cosine,rel_l2,snr_db,floor,beyond,count,nan_a,nan_b,inf_a,inf_b,"
        "reason,name_a,name_b,evidence,sure,aliases_a,aliases_b\r\n",
        out);
    for (size_t i = 0; i < diff->result.count; i++)
        put_row(out, diff, &diff->result.pairs[i]);
}
