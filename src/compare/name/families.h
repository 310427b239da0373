/* families.h: what a tensor is to its model, read from its name in any of the naming families tdbg knows.
 *
 *     model.layers.3.self_attn.q_proj.weight                      Hugging Face
 *     decoder.layers.3.self_attention.linear_qkv.weight           Megatron
 *     blk.3.attn_q.weight                                         llama.cpp
 *     model.layers.3.self_attn.qkv_proj.weight                    vLLM
 *
 * all say: layer, role, kind (a weight, a bias, what the module put out). Tensors that agree in these are the
 * same tensor.
 */
#ifndef TD_COMPARE_NAME_FAMILIES_H
#define TD_COMPARE_NAME_FAMILIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* In the order in which a block runs. */
enum td_role {
    TD_ROLE_NONE,
    TD_ROLE_EMBED,
    TD_ROLE_EMBED_POSITION,
    TD_ROLE_NORM_BARE, /* a norm before its weight */
    TD_ROLE_STREAM,    /* what comes into a layer */
    TD_ROLE_NORM_ATTN,
    TD_ROLE_ATTN_Q,
    TD_ROLE_ATTN_K,
    TD_ROLE_ATTN_V,
    TD_ROLE_ATTN_QKV,
    TD_ROLE_ATTN_Q_NORM,
    TD_ROLE_ATTN_K_NORM,
    TD_ROLE_ATTN_Q_ROPE,
    TD_ROLE_ATTN_K_ROPE,
    TD_ROLE_SCORES,
    TD_ROLE_PROBS,
    TD_ROLE_CONTEXT, /* what attention gathered, before it is projected */
    TD_ROLE_ATTN_O,
    TD_ROLE_ATTN, /* the whole module */
    TD_ROLE_NORM_ATTN_POST,
    TD_ROLE_STREAM_MID, /* between attention and the MLP */
    TD_ROLE_NORM_MLP,
    TD_ROLE_ROUTER,
    TD_ROLE_MLP_GATE,
    TD_ROLE_MLP_UP,
    TD_ROLE_MLP_GATE_UP, /* or up alone, where the model has no gate and the family one name for both */
    TD_ROLE_MLP_ACT,
    TD_ROLE_MLP_PRODUCT, /* of the activation and up */
    TD_ROLE_MLP_DOWN,
    TD_ROLE_MLP,
    TD_ROLE_NORM_MLP_POST,
    TD_ROLE_LAYER, /* what a layer puts out */
    TD_ROLE_NORM_FINAL,
    TD_ROLE_HEAD,
    TD_ROLES
};

enum td_part_kind { TD_PART_OUTPUT, TD_PART_INPUT, TD_PART_WEIGHT, TD_PART_BIAS };
enum td_stack { TD_STACK_MAIN, TD_STACK_ENCODER, TD_STACK_VISION, TD_STACK_AUDIO, TD_STACKS };

enum td_experts { TD_NO_EXPERT = -1, TD_SHARED_EXPERT = -2, TD_ALL_EXPERTS = -3 /* stacked */ };

struct td_identity {
    enum td_role role, other; /* other: what some engines mean by the same word, or none */
    enum td_part_kind kind;
    bool guessed; /* the role was put together from words; no family has the name */
    bool gradient;
    bool cross;     /* attention to another stack */
    int64_t expert; /* or one of td_experts */
    enum td_stack stack;
    bool decoder; /* the name says so; an "encoder" on a side without decoders is the main stack */
};

/* `stage` is the part of `name` after the layer, or the name when there is no layer (-1). The kind is known
 * even where the role is not. */
struct td_identity td_role_of(const char *name, int64_t layer, const char *stage);

/* What tells tensors of one role and layer apart, but for the expert, as one number. */
static inline int td_identity_traits(const struct td_identity *id)
{
    return (int)id->stack * 16 + (int)id->kind * 4 + id->gradient * 2 + id->cross;
}

/* The stack that the part of a name in front of the layer tells: name[0, length). */
enum td_stack td_stack_of(const char *name, size_t length);

/* The role of the nearest module around a stage that has none of its own: MLP for "mlp.act_fn". */
enum td_role td_role_around(const char *stage);

/* The last part of the stage's name says that it is a norm: "layer.0.layer_norm". */
bool td_names_norm(const char *stage);

/* The roles a fused role joins, in order; their count, or 0. */
int td_role_parts(enum td_role fused, enum td_role parts[3]);

#endif
