/* trace_flops.c: a matrix product of [m, k] and [k, n] takes 2 m n k operations, a batch of them b times
 * that. Operators made of these (linear, matmul, einsum) call them, so each product counts once.
 *
 *     "args": {"Input Dims": [[64], [8, 64], [64, 64], [], []]}        aten::addmm: bias, a, b
 */
#include "analyse/trace_flops.h"

enum { DIMS = 3 };

struct product {
    const char *name;
    int operand; /* which input is the first factor */
    int dims;    /* of each factor */
};

static const struct product products[] = {
    {"aten::mm", 0, 2}, {"aten::addmm", 1, 2}, {"aten::bmm", 0, 3}, {"aten::baddbmm", 1, 3}};

/* The `index`-th list of a list of lists of whole numbers. */
static bool dims_of(struct td_slice lists, int index, int dims, double *out)
{
    const char *p = lists.data, *end = p + lists.size;
    int list = -1, count = 0, depth = 0;
    bool digit = false;
    for (; p < end; p++) {
        bool was = digit;
        digit = *p >= '0' && *p <= '9';
        if (*p == '[' && ++depth == 2) {
            list++;
        } else if (*p == ']') {
            depth--;
            if (list == index)
                return count == dims;
        } else if (digit && depth == 2 && list == index) {
            count += !was;
            if (count > dims)
                return false;
            out[count - 1] = (was ? out[count - 1] : 0) * 10 + (*p - '0');
        }
    }
    return false;
}

double td_trace_flops(const struct td_trace_event *e)
{
    double told;
    if (e->args.data && td_slice_is(e->category, "scope") &&
        td_slice_number(td_trace_field(e->args, "flops"), &told) && told > 0)
        return told; /* a trace of our own */
    if (!e->args.data || !td_slice_begins(e->name, "aten::"))
        return 0;
    for (size_t i = 0; i < sizeof products / sizeof *products; i++) {
        const struct product *p = &products[i];
        double a[DIMS] = {0}, b[DIMS] = {0};
        if (!td_slice_is(e->name, p->name))
            continue;
        struct td_slice dims = td_trace_field(e->args, "Input Dims");
        if (!dims.data || !dims_of(dims, p->operand, p->dims, a) ||
            !dims_of(dims, p->operand + 1, p->dims, b))
            return 0;
        double batch = p->dims == 3 ? a[0] : 1;
        return 2 * batch * a[p->dims - 2] * a[p->dims - 1] * b[p->dims - 1];
    }
    return 0;
}
