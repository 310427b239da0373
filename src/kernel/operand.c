/* operand.c: reading operands as doubles. See operand.h and compare.h.
 *
 * A run of the operand's row-major order is cut where it passes from one part to the next; inside a part it
 * is a run of that part's own order, which td_load knows how to read.
 */
#include "kernel/compare.h"

#include "kernel/convert.h"
#include "kernel/load.h"

#include <string.h>

enum { SUM_CHUNK = 1024 };

struct span {
    int part;
    int64_t at, left; /* index within the part, and how many follow it there */
};

static struct span locate(const struct td_operand *o, int64_t index)
{
    if (o->part_count == 1)
        return (struct span){0, index, o->count - index};
    int64_t inner = 1;
    for (int i = o->axis + 1; i < o->shape.ndim; i++)
        inner *= o->shape.size[i];
    int64_t row = o->shape.size[o->axis] * inner, outer = index / row, rest = index % row;
    for (int p = 0; p < o->part_count; p++) {
        int64_t mine = o->parts[p].shape.size[o->axis] * inner;
        if (rest < mine)
            return (struct span){p, outer * mine + rest, mine - rest};
        rest -= mine;
    }
    return (struct span){0, 0, 0}; /* not reached: the parts add up to the axis */
}

static tdbg_status load_part(const struct td_operand *o, int part, int64_t start, int64_t count, double *out,
                             struct tdbg_error *error)
{
    const struct td_tensor *t = td_tensor_is_dense(&o->parts[part]) ? &o->parts[part] : o->stored[part];
    return td_load_f64(t, start, count, out, error);
}

tdbg_status td_operand_load(const struct td_operand *o, int64_t start, int64_t count, double *out,
                            struct tdbg_error *error)
{
    if (o->join == TD_JOIN_SUM) {
        double chunk[SUM_CHUNK];
        memset(out, 0, (size_t)count * sizeof *out);
        for (int64_t done = 0; done < count; done += SUM_CHUNK) {
            int64_t n = count - done < SUM_CHUNK ? count - done : SUM_CHUNK;
            for (int p = 0; p < o->part_count; p++) {
                TD_TRY(load_part(o, p, start + done, n, chunk, error));
                for (int64_t i = 0; i < n; i++)
                    out[done + i] += chunk[i];
            }
        }
        return TDBG_OK;
    }
    while (count > 0) {
        struct span s = locate(o, start);
        int64_t n = s.left < count ? s.left : count;
        TD_TRY(load_part(o, s.part, s.at, n, out, error));
        start += n;
        out += n;
        count -= n;
    }
    return TDBG_OK;
}

static tdbg_status fetch(const struct td_operand *o, int part, int64_t index, double *out,
                         struct tdbg_error *error)
{
    const struct td_tensor *t = &o->parts[part];
    if (!td_tensor_is_dense(t) || t->view.swapped)
        return load_part(o, part, index, 1, out, error);
    int64_t offset = 0;
    for (int i = t->shape.ndim - 1; i >= 0; i--) {
        offset += index % t->shape.size[i] * t->view.strides[i];
        index /= t->shape.size[i];
    }
    td_convert_f64(t->dtype, t->view.data + offset * (int64_t)td_dtype_size(t->dtype), 1, out);
    return TDBG_OK;
}

tdbg_status td_operand_gather(const struct td_operand *o, const int64_t *indices, int count, double *out,
                              struct tdbg_error *error)
{
    for (int i = 0; i < count; i++) {
        if (o->join == TD_JOIN_SUM) {
            out[i] = 0;
            for (int p = 0; p < o->part_count; p++) {
                double value;
                TD_TRY(fetch(o, p, indices[i], &value, error));
                out[i] += value;
            }
        } else {
            struct span s = locate(o, indices[i]);
            TD_TRY(fetch(o, s.part, s.at, &out[i], error));
        }
    }
    return TDBG_OK;
}
