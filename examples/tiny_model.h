/* tiny_model.h: a Llama-style decoder small enough to read in one sitting.
 *
 *     x                                        [tokens, hidden]
 *     for each layer:
 *         n = rms_norm(x)                      post_ln_pre_attn
 *         q, k, v = n Wq + bq, n Wk + bk, ...  query, key, value
 *         q, k = rope(q), rope(k)              query_final, key_final
 *         a = attention(q, k, v)               value_final, post_attn, scaling, sliding
 *         o = a Wo + bo                        post_attn_pre_resid
 *         x = x + o
 *         n = rms_norm(x)                      pre_mlp
 *         m = (silu(n Wgate) * n Wup) Wdown    post_mlp
 *         x = x + m
 *
 * On the right the names under which the values are dumped. Several query heads share a key/value head;
 * every other layer looks back only as far as a sliding window.
 */
#ifndef TINY_MODEL_H
#define TINY_MODEL_H

#include <stdbool.h>
#include <stdint.h>

enum {
    TOKENS = 24,
    HIDDEN = 64,
    HEADS = 8,
    KV_HEADS = 2,
    HEAD_DIM = 16,
    QUERY_DIM = HEADS * HEAD_DIM,
    KV_DIM = KV_HEADS * HEAD_DIM,
    MLP_DIM = 160,
    WINDOW = 8,

    /* Of the matrices: two for each weight and token. The scores are small beside them. */
    ATTENTION_FLOPS = 2 * TOKENS * HIDDEN * (2 * QUERY_DIM + 2 * KV_DIM),
    MLP_FLOPS = 2 * TOKENS * HIDDEN * 3 * MLP_DIM
};

#define ROPE_BASE 10000.0f
#define NORM_EPSILON 1e-5f

/* Matrices have a row per output: y[i] = w[i] . x + b[i]. */
struct layer {
    float attention_norm[HIDDEN];
    float query[QUERY_DIM][HIDDEN], query_bias[QUERY_DIM];
    float key[KV_DIM][HIDDEN], key_bias[KV_DIM];
    float value[KV_DIM][HIDDEN], value_bias[KV_DIM];
    float output[HIDDEN][QUERY_DIM], output_bias[HIDDEN];
    float mlp_norm[HIDDEN];
    float gate[MLP_DIM][HIDDEN], up[MLP_DIM][HIDDEN], down[HIDDEN][MLP_DIM];
};

struct model {
    float input[TOKENS][HIDDEN]; /* the embedded tokens */
    int layer_count;
    struct layer *layers;
};

/* Random weights, the same for the same seed. False when there is no memory. */
bool model_init(struct model *model, int layer_count, uint64_t seed);
void model_release(struct model *model);

/* Tokens that a layer looks back on, itself included; 0: all of them. */
int layer_window(int index);

/* What can be wrong with the port. */
enum bug {
    BUG_NONE,
    BUG_MISSING_QUERY_BIAS,
    BUG_WRONG_SCALE,
    BUG_SWAPPED_KV,
    BUG_ROPE_INTERLEAVED,
    BUG_MASK_OFF_BY_ONE,
    BUG_TOKEN_SHIFT,
    BUG_KV_TILED,
    BUG_WINDOW_IGNORED,
    BUG_STALE_WEIGHTS,
    BUG_GATE_UP_SWAPPED,
    BUGS
};

struct dump;

/* tiny_reference.c: float32, tokens first. */
void run_reference(const struct model *model, struct dump *out);

/* tiny_port.c: bfloat16, heads first; with a bug in the layers from `first_bad_layer` on. */
void run_port(const struct model *model, enum bug bug, int first_bad_layer, struct dump *out);

#endif
