/* families.c: see families.h.
 *
 * One row of the table for each way to call a thing. A row fits a stage that ends in it, from a '.' (or '/')
 * on and without the kind: "q_proj" fits "self_attn.q_proj" and "attn.attention.q_proj". The longest fit
 * counts, so that "attention.output.dense" is not "output.dense". Rows of names outside the layers fit only
 * there: "output" is llama.cpp's head, and within a layer what the layer put out.
 */
#include "compare/name/families.h"

#include "compare/name/name.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

struct row {
    const char *ending;
    enum td_role role;
};

static const struct row in_layer[] = {
    /* Hugging Face: llama, qwen, mistral, gemma, phi, opt; vLLM's fused names are the same with qkv, gate_up
     */
    {"q_proj", TD_ROLE_ATTN_Q},
    {"k_proj", TD_ROLE_ATTN_K},
    {"v_proj", TD_ROLE_ATTN_V},
    {"qkv_proj", TD_ROLE_ATTN_QKV},
    {"o_proj", TD_ROLE_ATTN_O},
    {"attn.in_proj", TD_ROLE_ATTN_QKV},
    {"self_attn.in_proj", TD_ROLE_ATTN_QKV},
    {"attn.out_proj", TD_ROLE_ATTN_O},
    {"self_attn.out_proj", TD_ROLE_ATTN_O},
    {"self_attn.dense", TD_ROLE_ATTN_O},
    {"attention.out_proj", TD_ROLE_ATTN_O},
    {"encoder_attn.out_proj", TD_ROLE_ATTN_O},
    {"q_norm", TD_ROLE_ATTN_Q_NORM},
    {"k_norm", TD_ROLE_ATTN_K_NORM},
    {"self_attn", TD_ROLE_ATTN},
    {"gate_proj", TD_ROLE_MLP_GATE},
    {"up_proj", TD_ROLE_MLP_UP},
    {"gate_up_proj", TD_ROLE_MLP_GATE_UP},
    {"down_proj", TD_ROLE_MLP_DOWN},
    {"fc1", TD_ROLE_MLP_UP},
    {"fc2", TD_ROLE_MLP_DOWN},
    {"mlp", TD_ROLE_MLP},
    {"mlp.gate", TD_ROLE_ROUTER},
    {"block_sparse_moe.gate", TD_ROLE_ROUTER},
    {"mlp.router", TD_ROLE_ROUTER},
    {"shared_expert_gate", TD_ROLE_ROUTER},
    {"input_layernorm", TD_ROLE_NORM_ATTN},
    {"self_attn_layer_norm", TD_ROLE_NORM_ATTN},
    {"encoder_attn_layer_norm", TD_ROLE_NORM_ATTN},
    {"post_attention_layernorm", TD_ROLE_NORM_ATTN_POST}, /* or NORM_MLP: match.c */
    {"pre_feedforward_layernorm", TD_ROLE_NORM_MLP},
    {"post_feedforward_layernorm", TD_ROLE_NORM_MLP_POST},
    {"final_layer_norm", TD_ROLE_NORM_MLP},
    /* Hugging Face: gpt2 */
    {"c_attn", TD_ROLE_ATTN_QKV},
    {"attn.c_proj", TD_ROLE_ATTN_O},
    {"attn", TD_ROLE_ATTN},
    {"c_fc", TD_ROLE_MLP_UP},
    {"mlp.c_proj", TD_ROLE_MLP_DOWN},
    {"ln_1", TD_ROLE_NORM_ATTN},
    {"ln_2", TD_ROLE_NORM_MLP},
    /* GPT-NeoX, bloom, falcon, and Megatron before its core */
    {"query_key_value", TD_ROLE_ATTN_QKV},
    {"attention.dense", TD_ROLE_ATTN_O},
    {"self_attention.dense", TD_ROLE_ATTN_O},
    {"self_attention", TD_ROLE_ATTN},
    {"attention", TD_ROLE_ATTN},
    {"dense_h_to_4h", TD_ROLE_MLP_GATE_UP},
    {"dense_4h_to_h", TD_ROLE_MLP_DOWN},
    /* Megatron */
    {"linear_qkv", TD_ROLE_ATTN_QKV},
    {"linear_proj", TD_ROLE_ATTN_O},
    {"q_layernorm", TD_ROLE_ATTN_Q_NORM},
    {"k_layernorm", TD_ROLE_ATTN_K_NORM},
    {"linear_fc1", TD_ROLE_MLP_GATE_UP},
    {"linear_fc2", TD_ROLE_MLP_DOWN},
    {"linear_qkv.layer_norm", TD_ROLE_NORM_ATTN},
    {"linear_fc1.layer_norm", TD_ROLE_NORM_MLP},
    {"pre_mlp_layernorm", TD_ROLE_NORM_MLP},
    /* llama.cpp */
    {"attn_norm", TD_ROLE_NORM_ATTN},
    {"attn_q", TD_ROLE_ATTN_Q},
    {"attn_k", TD_ROLE_ATTN_K},
    {"attn_v", TD_ROLE_ATTN_V},
    {"attn_qkv", TD_ROLE_ATTN_QKV},
    {"attn_q_norm", TD_ROLE_ATTN_Q_NORM},
    {"attn_k_norm", TD_ROLE_ATTN_K_NORM},
    {"attn_output", TD_ROLE_ATTN_O},
    {"post_attention_norm", TD_ROLE_NORM_ATTN_POST},
    {"ffn_norm", TD_ROLE_NORM_MLP},
    {"ffn_gate", TD_ROLE_MLP_GATE},
    {"ffn_up", TD_ROLE_MLP_UP},
    {"ffn_down", TD_ROLE_MLP_DOWN},
    {"ffn_gate_inp", TD_ROLE_ROUTER},
    {"ffn_gate_inp_shexp", TD_ROLE_ROUTER},
    {"ffn_gate_exps", TD_ROLE_MLP_GATE},
    {"ffn_up_exps", TD_ROLE_MLP_UP},
    {"ffn_down_exps", TD_ROLE_MLP_DOWN},
    {"ffn_gate_up_exps", TD_ROLE_MLP_GATE_UP},
    {"ffn_gate_shexp", TD_ROLE_MLP_GATE},
    {"ffn_up_shexp", TD_ROLE_MLP_UP},
    {"ffn_down_shexp", TD_ROLE_MLP_DOWN},
    {"attn_o", TD_ROLE_ATTN_O},
    {"cross_attn_norm", TD_ROLE_NORM_ATTN},
    {"cross_attn_q", TD_ROLE_ATTN_Q},
    {"cross_attn_k", TD_ROLE_ATTN_K},
    {"cross_attn_v", TD_ROLE_ATTN_V},
    {"cross_attn_o", TD_ROLE_ATTN_O},
    {"post_ffw_norm", TD_ROLE_NORM_MLP_POST},
    /* Meta's own llama */
    {"wq", TD_ROLE_ATTN_Q},
    {"wk", TD_ROLE_ATTN_K},
    {"wv", TD_ROLE_ATTN_V},
    {"wqkv", TD_ROLE_ATTN_QKV},
    {"wo", TD_ROLE_ATTN_O},
    {"attention_norm", TD_ROLE_NORM_ATTN},
    {"w1", TD_ROLE_MLP_GATE},
    {"w3", TD_ROLE_MLP_UP},
    {"w2", TD_ROLE_MLP_DOWN},
    {"w13", TD_ROLE_MLP_GATE_UP}, /* vLLM's experts */
    {"feed_forward", TD_ROLE_MLP},
    /* Hugging Face: bert and kin */
    {"attention.self.query", TD_ROLE_ATTN_Q},
    {"attention.self.key", TD_ROLE_ATTN_K},
    {"attention.self.value", TD_ROLE_ATTN_V},
    {"attention.attention.query", TD_ROLE_ATTN_Q},
    {"attention.attention.key", TD_ROLE_ATTN_K},
    {"attention.attention.value", TD_ROLE_ATTN_V},
    {"attention.output.dense", TD_ROLE_ATTN_O},
    {"attention.output.layernorm", TD_ROLE_NORM_ATTN_POST},
    {"attn_output_norm", TD_ROLE_NORM_ATTN_POST},
    {"intermediate.dense", TD_ROLE_MLP_UP},
    {"output.dense", TD_ROLE_MLP_DOWN},
    {"output.layernorm", TD_ROLE_NORM_MLP_POST},
    {"layer_output_norm", TD_ROLE_NORM_MLP_POST},
    {"layernorm_before", TD_ROLE_NORM_ATTN},
    {"layernorm_after", TD_ROLE_NORM_MLP},
    /* timm */
    {"attn.proj", TD_ROLE_ATTN_O},
    {"norm1", TD_ROLE_NORM_ATTN},
    {"norm2", TD_ROLE_NORM_MLP},
    /* OpenAI's whisper */
    {"attn_ln", TD_ROLE_NORM_ATTN},
    {"attn.out", TD_ROLE_ATTN_O},
    {"cross_attn_ln", TD_ROLE_NORM_ATTN},
    {"cross_attn.out", TD_ROLE_ATTN_O},
    {"mlp_ln", TD_ROLE_NORM_MLP},
    {"mlp.0", TD_ROLE_MLP_UP},
    {"mlp.2", TD_ROLE_MLP_DOWN},
    /* Hugging Face: t5 */
    {"SelfAttention", TD_ROLE_ATTN},
    {"SelfAttention.q", TD_ROLE_ATTN_Q},
    {"SelfAttention.k", TD_ROLE_ATTN_K},
    {"SelfAttention.v", TD_ROLE_ATTN_V},
    {"SelfAttention.o", TD_ROLE_ATTN_O},
    {"EncDecAttention", TD_ROLE_ATTN},
    {"EncDecAttention.q", TD_ROLE_ATTN_Q},
    {"EncDecAttention.k", TD_ROLE_ATTN_K},
    {"EncDecAttention.v", TD_ROLE_ATTN_V},
    {"EncDecAttention.o", TD_ROLE_ATTN_O},
    {"DenseReluDense", TD_ROLE_MLP},
    {"DenseReluDense.wi", TD_ROLE_MLP_UP},
    {"DenseReluDense.wi_0", TD_ROLE_MLP_GATE},
    {"DenseReluDense.wi_1", TD_ROLE_MLP_UP},
    {"DenseReluDense.wo", TD_ROLE_MLP_DOWN},
    /* dumps by stage */
    {"post_ln_pre_attn", TD_ROLE_NORM_ATTN},
    {"query", TD_ROLE_ATTN_Q},
    {"key", TD_ROLE_ATTN_K},
    {"value", TD_ROLE_ATTN_V},
    {"qkv", TD_ROLE_ATTN_QKV},
    {"post_attn_pre_resid", TD_ROLE_ATTN_O},
    {"pre_mlp", TD_ROLE_NORM_MLP},
    {"gate", TD_ROLE_MLP_GATE},
    {"up", TD_ROLE_MLP_UP},
    {"gate_up", TD_ROLE_MLP_GATE_UP},
    {"post_mlp", TD_ROLE_MLP_DOWN},
};

static const struct row outside[] = {
    {"embed_tokens", TD_ROLE_EMBED},    /* Hugging Face */
    {"wte", TD_ROLE_EMBED},             /* gpt2 */
    {"embed_in", TD_ROLE_EMBED},        /* GPT-NeoX */
    {"word_embeddings", TD_ROLE_EMBED}, /* Megatron, bert, bloom, falcon */
    {"token_embd", TD_ROLE_EMBED},      /* llama.cpp */
    {"tok_embeddings", TD_ROLE_EMBED},  /* Meta */
    {"embeddings", TD_ROLE_EMBED},      /* dumps */
    {"embedding", TD_ROLE_EMBED},
    {"wpe", TD_ROLE_EMBED_POSITION}, /* gpt2 */
    {"embed_positions", TD_ROLE_EMBED_POSITION},
    {"position_embeddings", TD_ROLE_EMBED_POSITION},
    {"position_embd", TD_ROLE_EMBED_POSITION},
    {"model.norm", TD_ROLE_NORM_FINAL}, /* Hugging Face */
    {"norm", TD_ROLE_NORM_FINAL},       /* Meta */
    {"ln_f", TD_ROLE_NORM_FINAL},       /* gpt2 */
    {"final_layer_norm", TD_ROLE_NORM_FINAL},
    {"final_layernorm", TD_ROLE_NORM_FINAL}, /* Megatron */
    {"final_norm", TD_ROLE_NORM_FINAL},
    {"output_norm", TD_ROLE_NORM_FINAL}, /* llama.cpp */
    {"lm_head", TD_ROLE_HEAD},           /* Hugging Face */
    {"embed_out", TD_ROLE_HEAD},         /* GPT-NeoX */
    {"output_layer", TD_ROLE_HEAD},      /* Megatron */
    {"output", TD_ROLE_HEAD},            /* llama.cpp, Meta */
    {"logits", TD_ROLE_HEAD},            /* dumps */
};

int td_role_parts(enum td_role fused, enum td_role parts[3])
{
    if (fused == TD_ROLE_ATTN_QKV) {
        parts[0] = TD_ROLE_ATTN_Q, parts[1] = TD_ROLE_ATTN_K, parts[2] = TD_ROLE_ATTN_V;
        return 3;
    }
    if (fused == TD_ROLE_MLP_GATE_UP) {
        parts[0] = TD_ROLE_MLP_GATE, parts[1] = TD_ROLE_MLP_UP;
        return 2;
    }
    return 0;
}

/* text[0, *length) ends in `ending`, from one of `before` on; it is cut off then, with what is before it. Of
 * a hundred endings few have even the last letter in common with a name. */
static bool cut_ending(const char *text, size_t *length, const char *ending, const char *before)
{
    size_t n = strlen(ending);
    if (*length < n || tolower((unsigned char)text[*length - 1]) != ending[n - 1] ||
        strncasecmp(text + *length - n, ending, n) != 0)
        return false;
    if (*length == n) {
        *length = 0;
        return true;
    }
    if (!strchr(before, text[*length - n - 1]))
        return false;
    *length -= n + 1;
    return true;
}

static enum td_part_kind cut_kind(const char *stage, size_t *length)
{
    static const struct {
        const char *ending;
        enum td_part_kind kind;
    } kinds[] = {
        {"weight", TD_PART_WEIGHT}, {"kernel", TD_PART_WEIGHT}, {"gamma", TD_PART_WEIGHT},
        {"bias", TD_PART_BIAS},     {"beta", TD_PART_BIAS},     {"input", TD_PART_INPUT},
        {"output", TD_PART_OUTPUT},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        size_t cut = *length;
        if (!cut_ending(stage, &cut, kinds[i].ending, "./") || cut == 0)
            continue;
        *length = cut;
        return kinds[i].kind;
    }
    /* Megatron's norm lives in the module behind it, torch's q, k and v in that of attention, and stacked
     * experts in that of all of them. */
    static const struct {
        const char *ending, *module;
        enum td_part_kind kind;
    } inside[] = {
        {"layer_norm_weight", "layer_norm", TD_PART_WEIGHT},
        {"layer_norm_bias", "layer_norm", TD_PART_BIAS},
        {"in_proj_weight", "in_proj", TD_PART_WEIGHT},
        {"in_proj_bias", "in_proj", TD_PART_BIAS},
        {"gate_up_proj_bias", "gate_up_proj", TD_PART_BIAS},
        {"down_proj_bias", "down_proj", TD_PART_BIAS},
        {"w13_weight", "w13", TD_PART_WEIGHT},
        {"w13_bias", "w13", TD_PART_BIAS},
        {"w2_weight", "w2", TD_PART_WEIGHT},
        {"w2_bias", "w2", TD_PART_BIAS},
    };
    for (size_t i = 0; i < sizeof inside / sizeof *inside; i++) {
        size_t cut = *length;
        if (!cut_ending(stage, &cut, inside[i].ending, "./"))
            continue;
        *length -= strlen(inside[i].ending) - strlen(inside[i].module);
        return inside[i].kind;
    }
    return TD_PART_OUTPUT;
}

static enum td_role find_role(const char *stage, size_t length, bool layered)
{
    const struct row *rows = layered ? in_layer : outside;
    size_t count = layered ? sizeof in_layer / sizeof *in_layer : sizeof outside / sizeof *outside;
    enum td_role best = TD_ROLE_NONE;
    size_t longest = 0;
    for (size_t i = 0; i < count; i++) {
        size_t rest = length, n = strlen(rows[i].ending);
        if (n > longest && cut_ending(stage, &rest, rows[i].ending, "./")) {
            longest = n;
            best = rows[i].role;
        }
    }
    return best;
}

static bool is_one_of(const struct td_word *word, const char *const *words)
{
    for (; *words; words++)
        if (td_word_is(word, *words))
            return true;
    return false;
}

static int64_t number_of(const struct td_word *word)
{
    int64_t number = 0;
    for (size_t i = 0; i < word->length; i++)
        number = number * 10 + (word->text[i] - '0');
    return number;
}

/* What the words of the stage add: attention to another stack, one expert of many. */
static void read_stage_words(const char *stage, size_t length, struct td_identity *out)
{
    static const char *const across[] = {"cross", "crossattention", "encoder", NULL};
    static const char *const experts[] = {"experts", "expert", "exps", NULL};
    struct td_word word, before = {0};
    for (size_t at = 0; td_word_next(stage, length, &at, false, &word); before = word) {
        if (is_one_of(&word, across) || td_word_is(&word, "EncDecAttention"))
            out->cross = true;
        bool names_experts = is_one_of(&word, experts);
        if (td_word_is(&word, "shexp") || (names_experts && before.length && td_word_is(&before, "shared")))
            out->expert = TD_SHARED_EXPERT;
        else if (names_experts && out->expert == TD_NO_EXPERT)
            out->expert = TD_ALL_EXPERTS;
        if (word.number && before.length && is_one_of(&before, experts) && word.length <= 9)
            out->expert = number_of(&word);
    }
}

static void read_stack(const char *name, size_t length, struct td_identity *out)
{
    static const char *const vision[] = {"vision", "visual", "vit", NULL};
    static const char *const audio[] = {"audio", NULL};
    static const char *const encoder[] = {"encoder", "enc", NULL};
    static const char *const decoder[] = {"decoder", "dec", NULL};
    struct td_word word;
    for (size_t at = 0; td_word_next(name, length, &at, false, &word);) {
        if (is_one_of(&word, vision))
            out->stack = TD_STACK_VISION;
        else if (is_one_of(&word, audio))
            out->stack = TD_STACK_AUDIO;
        else if (is_one_of(&word, encoder) && out->stack == TD_STACK_MAIN)
            out->stack = TD_STACK_ENCODER;
        else if (is_one_of(&word, decoder))
            out->decoder = true;
    }
}

enum td_stack td_stack_of(const char *name, size_t length)
{
    struct td_identity out = {0};
    read_stack(name, length, &out);
    return out.decoder ? TD_STACK_MAIN : out.stack;
}

enum td_role td_role_around(const char *stage)
{
    enum td_role role = TD_ROLE_NONE;
    for (size_t length = strlen(stage); length > 0 && role == TD_ROLE_NONE;) {
        while (length > 0 && !strchr("./", stage[length - 1]))
            length--;
        length -= length > 0;
        role = length ? find_role(stage, length, true) : TD_ROLE_NONE;
    }
    return role;
}

bool td_names_norm(const char *stage)
{
    static const char *const norms[] = {"norm", "layernorm", "rmsnorm", "ln", NULL};
    size_t length = strlen(stage);
    cut_kind(stage, &length);
    struct td_word word, last = {0};
    for (size_t at = 0; td_word_next(stage, length, &at, false, &word);)
        last = word;
    return last.length && is_one_of(&last, norms);
}

/* The number that text[0, length) ends in, behind `before`: its digits are cut off then; else -1. */
static int64_t cut_number(const char *text, size_t *length, const char *before)
{
    enum { MOST_DIGITS = 9 };
    size_t end = *length, at = end;
    while (at > 0 && text[at - 1] >= '0' && text[at - 1] <= '9')
        at--;
    size_t rest = at;
    if (at == end || end - at > MOST_DIGITS || !cut_ending(text, &rest, before, "./_"))
        return -1;
    *length = at;
    return number_of(&(struct td_word){.text = text + at, .length = end - at, .number = true});
}

/* Two families number their experts elsewhere: Transformer Engine the parameters of one module
 * (experts.linear_fc1.weight3), older files of llama.cpp the module itself (ffn_gate.3.weight). */
static void read_late_number(const char *stage, size_t *length, struct td_identity *out)
{
    static const struct {
        const char *before;
        enum td_part_kind kind;
    } parts[] = {{"weight", TD_PART_WEIGHT}, {"bias", TD_PART_BIAS}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts && out->expert == TD_ALL_EXPERTS; i++) {
        int64_t number = cut_number(stage, length, parts[i].before);
        if (number < 0 || !cut_ending(stage, length, parts[i].before, "."))
            continue;
        out->expert = number;
        out->kind = parts[i].kind;
        out->role = find_role(stage, *length, true);
    }
    static const char *const modules[] = {"ffn_gate.", "ffn_up.", "ffn_down."};
    for (size_t i = 0; i < sizeof modules / sizeof *modules && out->expert == TD_NO_EXPERT; i++) {
        int64_t number = cut_number(stage, length, modules[i]);
        if (number < 0)
            continue;
        out->expert = number;
        out->role = find_role(stage, *length - 1, true);
    }
}

/* Hugging Face keeps stacked experts as parameters of their module, without a word for what they are. */
static bool is_stacked_parameter(const struct td_identity *id, const char *stage, size_t length)
{
    return id->expert == TD_ALL_EXPERTS && id->kind == TD_PART_OUTPUT &&
           (cut_ending(stage, &length, "experts.gate_up_proj", ".") ||
            cut_ending(stage, &length, "experts.down_proj", "."));
}

struct td_identity td_role_of(const char *name, int64_t layer, const char *stage)
{
    struct td_identity out = {.expert = TD_NO_EXPERT};
    struct td_name parts = td_name_split(name);
    size_t length = strlen(stage);
    const char *own = parts.key ? parts.key : parts.file + parts.folder;
    size_t own_length = parts.key ? strlen(parts.key) : parts.stem - parts.folder;
    if (layer < 0) {
        stage = own;
        length = own_length;
    }
    out.gradient = cut_ending(stage, &length, "grad", "._/");
    out.kind = cut_kind(stage, &length);
    out.role = find_role(stage, length, layer >= 0);
    if (layer >= 0) {
        read_stage_words(stage, length, &out);
        if (out.role == TD_ROLE_NONE)
            read_late_number(stage, &length, &out);
        if (is_stacked_parameter(&out, stage, length))
            out.kind = TD_PART_WEIGHT;
        own_length -= own_length < strlen(stage) ? own_length : strlen(stage);
    }
    read_stack(own, own_length, &out);
    return out;
}
