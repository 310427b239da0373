/* original_match.c: a match as the original API shows it.
 *
 * Its page prints means, deviations and differences without asking whether they are numbers, and takes
 * layer_num for a number. So statistics are finite (over the finite values, 0 where there are none; how many
 * were not is told beside them), a pair without any finite pair of values is an error, and what has no layer
 * is in one that sorts last, as it always was.
 */
#include "serve/original.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

/* Where the matches of archives go that have no layer. */
enum { NO_LAYER = 9999 };

void td_put_finite(struct td_json *j, const char *key, double value)
{
    td_json_field_number(j, key, isfinite(value) ? value : 0);
}

void td_put_shape(struct td_json *j, const char *key, const struct td_shape *shape)
{
    td_json_key(j, key);
    if (shape)
        td_json_ints(j, shape->size, (size_t)shape->ndim);
    else
        td_json_null(j);
}

/* A name that has no layer: without its folder and, when it is that of a file, without what says so. */
static void strip_name(char out[TD_STAGE_TEXT], const char *name)
{
    static const char *const endings[] = {".pth", ".pt", ".safetensors", ".bin", ".ckpt", ".npy"};
    const char *base = strrchr(name, '/');
    snprintf(out, TD_STAGE_TEXT, "%s", base ? base + 1 : name);
    size_t length = strlen(out);
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        size_t size = strlen(endings[i]);
        if (length > size && strcmp(out + length - size, endings[i]) == 0) {
            out[length - size] = 0;
            return;
        }
    }
}

void td_match_stage(char out[TD_STAGE_TEXT], const struct td_pair *pair)
{
    if (pair->layer >= 0)
        snprintf(out, TD_STAGE_TEXT, "%s", pair->stage);
    else
        strip_name(out, pair->stage);
}

/* "post_attn" -> "Post Attn" */
static void put_display(struct td_json *j, const char *stage)
{
    char text[TD_STAGE_TEXT];
    bool inside = false;
    size_t length = strnlen(stage, sizeof text - 1);
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)stage[i];
        text[i] = c == '_' ? ' ' : (char)(inside ? tolower(c) : toupper(c));
        inside = isalpha(c) || c >= 0x80;
    }
    text[length] = 0;
    td_json_field_string(j, "stage_display", text);
}

/* --- one side ------------------------------------------------------------------------------------------- */

/* Of the tensor as it is stored: the comparison may have looked at a part of it only. */
static tdbg_status side_stats(const struct td_pair *p, int side, struct tdbg_stats *out,
                              struct tdbg_error *error)
{
    const struct td_item *item = side ? p->b : p->a;
    const struct tdbg_stats *measured = side ? &p->outcome.metrics.b : &p->outcome.metrics.a;
    uint64_t all = (uint64_t)item->parts[0]->count * (uint64_t)item->part_count;
    if (td_pair_measured(p) && measured->count == all) {
        *out = *measured;
        return TDBG_OK;
    }
    return td_input_stats(item->parts[0], NULL, NULL, out, error);
}

static tdbg_status put_side(struct td_json *j, const char *key, const struct td_pair *p, int side,
                            struct tdbg_error *error)
{
    const struct td_item *item = side ? p->b : p->a;
    struct tdbg_stats s;
    char dtype[64];
    td_json_key(j, key);
    if (!item) {
        td_json_null(j);
        return TDBG_OK;
    }
    TD_TRY(side_stats(p, side, &s, error));
    snprintf(dtype, sizeof dtype, "torch.%s", td_dtype_name(item->parts[0]->dtype));
    td_json_begin_object(j);
    td_put_shape(j, "shape", &item->parts[0]->shape);
    td_json_field_string(j, "dtype", dtype);
    td_put_finite(j, "mean", s.mean);
    td_put_finite(j, "std", s.std);
    td_put_finite(j, "min", s.min);
    td_put_finite(j, "max", s.max);
    td_json_field_uint(j, "nan", s.nan);
    td_json_field_uint(j, "inf", s.inf);
    td_json_end_object(j);
    return TDBG_OK;
}

/* --- both ----------------------------------------------------------------------------------------------- */

static bool same_shape(const struct td_shape *a, const struct td_shape *b)
{
    return a->ndim == b->ndim && memcmp(a->size, b->size, (size_t)a->ndim * sizeof *a->size) == 0;
}

static void put_difference(struct td_json *j, const struct td_pair *p)
{
    td_json_key(j, "diff_stats");
    if (!p->a || !p->b) {
        td_json_null(j);
        return;
    }
    const struct td_shape *a = &p->a->parts[0]->shape, *b = &p->b->parts[0]->shape;
    const struct td_metrics *m = &p->outcome.metrics;
    bool measured = td_pair_measured(p), nothing = measured && m->count > 0 && m->paired == 0;
    td_json_begin_object(j);
    td_json_field_bool(j, "shape_match", measured);
    td_put_shape(j, "original_shape1", a);
    td_put_shape(j, "original_shape2", b);
    if (!measured || nothing) {
        td_json_field_string(j, "error",
                             measured ? "no value is finite on both sides" : p->outcome.ruling.reason);
    } else {
        const struct td_shape *final = &p->layout->shape;
        td_put_shape(j, "final_shape", final);
        td_json_field_bool(j, "reshaped", !same_shape(a, final) || !same_shape(b, final));
        td_put_finite(j, "abs_diff_mean", m->mean_abs);
        td_put_finite(j, "abs_diff_max", m->max_abs);
        td_put_finite(j, "rel_diff_mean", m->mean_rel);
        td_put_finite(j, "mse", m->mse);
        td_json_field_number(j, "cosine_sim", isfinite(m->cosine) ? m->cosine : 1);
    }
    td_json_end_object(j);
}

static const char *match_type(const struct td_listing *listing, const struct td_pair *p)
{
    if (!p->a || !p->b)
        return p->a ? "model1_only" : "model2_only";
    if (listing->mode == TD_SINGLE_FILE)
        return "self_comparison";
    return listing->mode == TD_DUAL_PTH ? "dual_pth" : "both";
}

static void put_place(struct td_json *j, const struct td_listing *listing, const struct td_pair *p)
{
    bool archives = listing->mode == TD_DUAL_ARCHIVE || listing->mode == TD_MIXED;
    int none = archives ? NO_LAYER : 0;
    const struct td_item *named = p->a ? p->a : p->b;
    char stage[TD_STAGE_TEXT];
    td_match_stage(stage, p);
    td_json_field_int(j, "layer_num", p->layer >= 0 ? p->layer : none);
    td_json_field_string(j, "stage", stage);
    td_json_field_int(j, "stage_index", p->layer >= 0 ? named->stage_rank : none);
    put_display(j, stage);
}

tdbg_status td_match_put(struct td_json *j, struct td_listing *listing, size_t position,
                         struct tdbg_error *error)
{
    const struct td_pair *p;
    TD_TRY(td_listing_pair(listing, position, &p, error));
    td_json_begin_object(j);
    td_json_field_uint(j, "match_index", position);
    td_json_field_string(j, "model1_file", p->a ? p->a->name : NULL);
    td_json_field_string(j, "model2_file", p->b ? p->b->name : NULL);
    put_place(j, listing, p);
    td_json_field_string(j, "match_type", match_type(listing, p));
    TD_TRY(put_side(j, "model1_data", p, 0, error));
    TD_TRY(put_side(j, "model2_data", p, 1, error));
    put_difference(j, p);
    td_json_field_string(j, "verdict", td_verdict_name(p->outcome.ruling.verdict));
    td_json_field_string(j, "reason", p->outcome.ruling.reason);
    td_json_end_object(j);
    return TDBG_OK;
}

tdbg_status td_matches_put(struct td_json *j, struct td_listing *listing, struct tdbg_error *error)
{
    td_json_key(j, "matches");
    td_json_begin_array(j);
    for (size_t i = 0; i < listing->count; i++)
        TD_TRY(td_match_put(j, listing, i, error));
    td_json_end_array(j);
    return TDBG_OK;
}
