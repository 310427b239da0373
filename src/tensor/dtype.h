/* dtype.h: the element types tdbg knows, in one table.
 *
 * A plain type has one element per block. A block type (GGUF's quantised formats) packs `block` elements
 * into `bytes`; an affine type (torch's qint8 and kin) is an integer with a scale and a zero point beside it.
 * Both read as float32: `value` says what an element becomes when it is read.
 */
#ifndef TD_TENSOR_DTYPE_H
#define TD_TENSOR_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum td_dtype {
    TD_F64,
    TD_F32,
    TD_F16,
    TD_BF16,
    TD_F8_E4M3FN,
    TD_F8_E5M2,
    TD_F8_E4M3FNUZ,
    TD_F8_E5M2FNUZ,
    TD_I64,
    TD_I32,
    TD_I16,
    TD_I8,
    TD_U64,
    TD_U32,
    TD_U16,
    TD_U8,
    TD_BOOL,
    TD_C64,  /* two float32 */
    TD_C128, /* two float64 */
    TD_PLAIN_DTYPES,

    TD_Q4_0 = TD_PLAIN_DTYPES,
    TD_Q4_1,
    TD_Q5_0,
    TD_Q5_1,
    TD_Q8_0,
    TD_Q2_K,
    TD_Q3_K,
    TD_Q4_K,
    TD_Q5_K,
    TD_Q6_K,
    TD_IQ4_NL,
    TD_IQ4_XS,

    TD_QINT8,
    TD_QUINT8,
    TD_QINT32,
    TD_DTYPES
};

enum td_kind { TD_FLOAT, TD_INT, TD_UINT, TD_BOOLEAN, TD_COMPLEX, TD_BLOCK, TD_AFFINE };

struct td_dtype_facts {
    const char *name;
    enum td_kind kind;
    uint32_t block;      /* elements per block; 1 for plain types */
    uint32_t bytes;      /* bytes per block */
    enum td_dtype value; /* the plain type an element reads as */
};

const struct td_dtype_facts *td_dtype_facts(enum td_dtype dtype);

static inline const char *td_dtype_name(enum td_dtype dtype)
{
    return td_dtype_facts(dtype)->name;
}

/* The plain type of this name, or false. */
bool td_dtype_find(const char *name, enum td_dtype *out);

/* Bytes of one element of a plain or affine type. */
static inline size_t td_dtype_size(enum td_dtype dtype)
{
    return td_dtype_facts(dtype)->bytes;
}

static inline bool td_dtype_is_plain(enum td_dtype dtype)
{
    return dtype < TD_PLAIN_DTYPES;
}

#endif
