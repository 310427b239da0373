/* values.c: see values.h.
 *
 * A reader of JSON has doubles and maybe float32, but no bfloat16: text that only rounds back to the right
 * bfloat16 would be off by up to 0.4 % for everybody else. So JSON gets the digits a float32 needs, which
 * give the same bits in the smaller type as well.
 */
#include "report/values.h"

#include "kernel/convert.h"

#include <string.h>

static const struct td_float_kind float8_e4m3fn = {4, -9}, float8_e5m2 = {3, -16}, float8_e4m3fnuz = {4, -10},
                                  float8_e5m2fnuz = {3, -17};

static const struct td_float_kind *float_kind(enum td_dtype dtype)
{
    switch (dtype) {
    case TD_F32:
    case TD_C64:
        return &td_float32;
    case TD_F16:
        return &td_float16;
    case TD_BF16:
        return &td_bfloat16;
    case TD_F8_E4M3FN:
        return &float8_e4m3fn;
    case TD_F8_E5M2:
        return &float8_e5m2;
    case TD_F8_E4M3FNUZ:
        return &float8_e4m3fnuz;
    case TD_F8_E5M2FNUZ:
        return &float8_e5m2fnuz;
    default:
        return &td_float64;
    }
}

static enum td_value_kind value_kind(enum td_dtype dtype)
{
    switch (td_dtype_facts(dtype)->kind) {
    case TD_INT:
        return TD_VALUE_INT;
    case TD_UINT:
        return TD_VALUE_UINT;
    case TD_BOOLEAN:
        return TD_VALUE_BOOL;
    case TD_COMPLEX:
        return TD_VALUE_COMPLEX;
    default:
        return TD_VALUE_FLOAT;
    }
}

void td_values_init(struct td_values *v, struct td_elements elements)
{
    v->elements = elements;
    v->dtype = elements.dtype;
    v->kind = value_kind(v->dtype);
    v->own = float_kind(v->dtype);
    v->wide = v->own == &td_float64 ? &td_float64 : &td_float32;
    v->at = v->count = 0;
}

tdbg_status td_values_load(struct td_values *v, int64_t at, int64_t count, struct tdbg_error *error)
{
    v->count = 0;
    TD_TRY(v->elements.load(v->elements.context, at, count, v->raw, error));
    if (v->kind == TD_VALUE_FLOAT)
        td_convert_f64(v->dtype, v->raw, count, v->real);
    v->at = at;
    v->count = count;
    return TDBG_OK;
}

static int64_t signed_at(const char *raw, size_t size, int64_t i)
{
    switch (size) {
    case 1:
        return ((const int8_t *)raw)[i];
    case 2:
        return ((const int16_t *)raw)[i];
    case 4:
        return ((const int32_t *)raw)[i];
    default:
        return ((const int64_t *)raw)[i];
    }
}

static uint64_t unsigned_at(const char *raw, size_t size, int64_t i)
{
    switch (size) {
    case 1:
        return ((const uint8_t *)raw)[i];
    case 2:
        return ((const uint16_t *)raw)[i];
    case 4:
        return ((const uint32_t *)raw)[i];
    default:
        return ((const uint64_t *)raw)[i];
    }
}

tdbg_status td_values_get(struct td_values *v, int64_t i, struct td_value *out, struct tdbg_error *error)
{
    if (i < v->at || i >= v->at + v->count) {
        int64_t left = v->elements.count - i;
        TD_TRY(td_values_load(v, i, left < TD_VALUES_CHUNK ? left : TD_VALUES_CHUNK, error));
    }
    i -= v->at;
    out->kind = v->kind;
    switch (v->kind) {
    case TD_VALUE_FLOAT:
        out->real = v->real[i];
        break;
    case TD_VALUE_INT:
        out->integer = signed_at(v->raw, td_dtype_size(v->dtype), i);
        break;
    case TD_VALUE_UINT:
        out->natural = unsigned_at(v->raw, td_dtype_size(v->dtype), i);
        break;
    case TD_VALUE_BOOL:
        out->truth = v->raw[i] != 0;
        break;
    case TD_VALUE_COMPLEX:
        out->complex.re = v->dtype == TD_C64 ? (double)((const float *)v->raw)[2 * i]
                                             : ((const double *)(const void *)v->raw)[2 * i];
        out->complex.im = v->dtype == TD_C64 ? (double)((const float *)v->raw)[2 * i + 1]
                                             : ((const double *)(const void *)v->raw)[2 * i + 1];
        break;
    }
    return TDBG_OK;
}

void td_values_write(struct td_json *j, const struct td_values *v, const struct td_value *value)
{
    switch (value->kind) {
    case TD_VALUE_FLOAT:
        td_json_float(j, value->real, v->wide);
        break;
    case TD_VALUE_INT:
        td_json_int(j, value->integer);
        break;
    case TD_VALUE_UINT:
        td_json_uint(j, value->natural);
        break;
    case TD_VALUE_BOOL:
        td_json_bool(j, value->truth);
        break;
    case TD_VALUE_COMPLEX:
        td_json_begin_array(j);
        td_json_float(j, value->complex.re, v->wide);
        td_json_float(j, value->complex.im, v->wide);
        td_json_end_array(j);
        break;
    }
}
