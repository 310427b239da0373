/* dtype.c: see dtype.h. The names are those of torch and ggml; users' scripts rely on them. */
#include "tensor/dtype.h"

#include <string.h>

#include <assert.h>

static const struct td_dtype_facts facts[TD_DTYPES] = {
    [TD_F64] = {"float64", TD_FLOAT, 1, 8, TD_F64},
    [TD_F32] = {"float32", TD_FLOAT, 1, 4, TD_F32},
    [TD_F16] = {"float16", TD_FLOAT, 1, 2, TD_F16},
    [TD_BF16] = {"bfloat16", TD_FLOAT, 1, 2, TD_BF16},
    [TD_F8_E4M3FN] = {"float8_e4m3fn", TD_FLOAT, 1, 1, TD_F8_E4M3FN},
    [TD_F8_E5M2] = {"float8_e5m2", TD_FLOAT, 1, 1, TD_F8_E5M2},
    [TD_F8_E4M3FNUZ] = {"float8_e4m3fnuz", TD_FLOAT, 1, 1, TD_F8_E4M3FNUZ},
    [TD_F8_E5M2FNUZ] = {"float8_e5m2fnuz", TD_FLOAT, 1, 1, TD_F8_E5M2FNUZ},
    [TD_I64] = {"int64", TD_INT, 1, 8, TD_I64},
    [TD_I32] = {"int32", TD_INT, 1, 4, TD_I32},
    [TD_I16] = {"int16", TD_INT, 1, 2, TD_I16},
    [TD_I8] = {"int8", TD_INT, 1, 1, TD_I8},
    [TD_U64] = {"uint64", TD_UINT, 1, 8, TD_U64},
    [TD_U32] = {"uint32", TD_UINT, 1, 4, TD_U32},
    [TD_U16] = {"uint16", TD_UINT, 1, 2, TD_U16},
    [TD_U8] = {"uint8", TD_UINT, 1, 1, TD_U8},
    [TD_BOOL] = {"bool", TD_BOOLEAN, 1, 1, TD_BOOL},
    [TD_C64] = {"complex64", TD_COMPLEX, 1, 8, TD_C64},
    [TD_C128] = {"complex128", TD_COMPLEX, 1, 16, TD_C128},

    [TD_Q4_0] = {"q4_0", TD_BLOCK, 32, 18, TD_F32},
    [TD_Q4_1] = {"q4_1", TD_BLOCK, 32, 20, TD_F32},
    [TD_Q5_0] = {"q5_0", TD_BLOCK, 32, 22, TD_F32},
    [TD_Q5_1] = {"q5_1", TD_BLOCK, 32, 24, TD_F32},
    [TD_Q8_0] = {"q8_0", TD_BLOCK, 32, 34, TD_F32},
    [TD_Q2_K] = {"q2_k", TD_BLOCK, 256, 84, TD_F32},
    [TD_Q3_K] = {"q3_k", TD_BLOCK, 256, 110, TD_F32},
    [TD_Q4_K] = {"q4_k", TD_BLOCK, 256, 144, TD_F32},
    [TD_Q5_K] = {"q5_k", TD_BLOCK, 256, 176, TD_F32},
    [TD_Q6_K] = {"q6_k", TD_BLOCK, 256, 210, TD_F32},
    [TD_IQ4_NL] = {"iq4_nl", TD_BLOCK, 32, 18, TD_F32},
    [TD_IQ4_XS] = {"iq4_xs", TD_BLOCK, 256, 136, TD_F32},

    [TD_QINT8] = {"qint8", TD_AFFINE, 1, 1, TD_F32},
    [TD_QUINT8] = {"quint8", TD_AFFINE, 1, 1, TD_F32},
    [TD_QINT32] = {"qint32", TD_AFFINE, 1, 4, TD_F32},
};

const struct td_dtype_facts *td_dtype_facts(enum td_dtype dtype)
{
    assert((unsigned)dtype < TD_DTYPES);
    return &facts[dtype];
}

bool td_dtype_find(const char *name, enum td_dtype *out)
{
    for (int i = 0; i < TD_PLAIN_DTYPES; i++)
        if (strcmp(name, td_dtype_name((enum td_dtype)i)) == 0) {
            *out = (enum td_dtype)i;
            return true;
        }
    return false;
}
