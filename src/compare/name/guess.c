/* guess.c: see guess.h.
 *
 * Every word belongs to one or two ideas (attention, norm, query, into, out of), whatever its spelling. A
 * role is a set of ideas that are there; the rules stand in the order in which they are tried.
 */
#include "compare/name/guess.h"

#include "compare/name/name.h"

#include <stdint.h>

enum {
    ATTENTION = 1 << 0,
    MLP = 1 << 1,
    NORM = 1 << 2,
    QUERY = 1 << 3,
    KEY = 1 << 4,
    VALUE = 1 << 5,
    ROTARY = 1 << 6,
    INTO = 1 << 7,
    OUT_OF = 1 << 8,
    AFTER = 1 << 9,
    GATE = 1 << 10,
    UP = 1 << 11,
    DOWN = 1 << 12,
    ACTIVATION = 1 << 13,
    PRODUCT = 1 << 14,
    SCORES = 1 << 15,
    PROBABILITIES = 1 << 16,
    CONTEXT = 1 << 17,
    STREAM = 1 << 18,
    MIDDLE = 1 << 19,
    FIRST = 1 << 20,
    SECOND = 1 << 21,
    LOGITS = 1 << 22,
    EMBEDDING = 1 << 23,
    POSITION = 1 << 24,
    FINAL = 1 << 25,
    PROJECTION = 1 << 26,
    NAKED = 1 << 27 /* a letter for whatever goes through */
};

static const struct {
    const char *word;
    uint32_t ideas;
} words[] = {
    {"attn", ATTENTION},
    {"attention", ATTENTION},
    {"att", ATTENTION},
    {"sa", ATTENTION},
    {"mha", ATTENTION},
    {"msa", ATTENTION},
    {"mlp", MLP},
    {"ffn", MLP},
    {"ff", MLP},
    {"feed", MLP},
    {"fc", MLP},
    {"norm", NORM},
    {"ln", NORM},
    {"layernorm", NORM},
    {"rms", NORM},
    {"rmsnorm", NORM},
    {"normed", NORM},
    {"q", QUERY},
    {"query", QUERY},
    {"xq", QUERY},
    {"queries", QUERY},
    {"wq", QUERY},
    {"qproj", QUERY},
    {"wk", KEY},
    {"kproj", KEY},
    {"wv", VALUE},
    {"vproj", VALUE},
    {"k", KEY},
    {"key", KEY},
    {"xk", KEY},
    {"keys", KEY},
    {"v", VALUE},
    {"value", VALUE},
    {"xv", VALUE},
    {"values", VALUE},
    {"qkv", QUERY | KEY | VALUE},
    {"rope", ROTARY},
    {"rot", ROTARY},
    {"rotary", ROTARY},
    {"rotated", ROTARY},
    {"roped", ROTARY},
    {"in", INTO},
    {"input", INTO},
    {"inp", INTO},
    {"pre", INTO},
    {"before", INTO},
    {"out", OUT_OF},
    {"output", OUT_OF},
    {"o", OUT_OF},
    {"y", OUT_OF | NAKED},
    {"post", AFTER},
    {"after", AFTER},
    {"gate", GATE},
    {"g", GATE},
    {"up", UP},
    {"u", UP},
    {"down", DOWN},
    {"d", DOWN},
    {"act", ACTIVATION},
    {"activation", ACTIVATION},
    {"silu", ACTIVATION},
    {"gelu", ACTIVATION},
    {"relu", ACTIVATION},
    {"swiglu", PRODUCT},
    {"geglu", PRODUCT},
    {"glu", PRODUCT},
    {"prod", PRODUCT},
    {"mul", PRODUCT},
    {"inner", PRODUCT},
    {"h", PRODUCT | NAKED},
    {"hidden", PRODUCT | NAKED},
    {"scores", SCORES},
    {"score", SCORES},
    {"qk", SCORES},
    {"kq", SCORES},
    {"probs", PROBABILITIES},
    {"prob", PROBABILITIES},
    {"softmax", PROBABILITIES},
    {"pattern", PROBABILITIES},
    {"weights", PROBABILITIES},
    {"ctx", CONTEXT},
    {"context", CONTEXT},
    {"z", CONTEXT},
    {"resid", STREAM},
    {"residual", STREAM},
    {"res", STREAM},
    {"skip", STREAM},
    {"stream", STREAM},
    {"mid", MIDDLE},
    {"1", FIRST},
    {"2", SECOND},
    {"logits", LOGITS},
    {"head", LOGITS},
    {"unembed", LOGITS},
    {"emb", EMBEDDING},
    {"embd", EMBEDDING},
    {"embed", EMBEDDING},
    {"embedding", EMBEDDING},
    {"embeddings", EMBEDDING},
    {"tok", EMBEDDING},
    {"token", EMBEDDING},
    {"wte", EMBEDDING},
    {"pos", POSITION},
    {"position", POSITION},
    {"positions", POSITION},
    {"final", FINAL},
    {"f", FINAL},
    {"last", FINAL},
    {"proj", PROJECTION},
    {"projection", PROJECTION},
    {"dense", PROJECTION},
    {"linear", PROJECTION},
    {"x", NAKED},
};

/* The role of what has all of `all`, any of `any` (0: whatever) and nothing of `none`. */
struct rule {
    uint32_t all, any, none;
    enum td_role role, other;
};

static const struct rule in_layer[] = {
    {QUERY | KEY | VALUE, 0, 0, TD_ROLE_ATTN_QKV, TD_ROLE_NONE},
    {0, SCORES, 0, TD_ROLE_SCORES, TD_ROLE_NONE},
    {0, PROBABILITIES, 0, TD_ROLE_PROBS, TD_ROLE_NONE},
    {QUERY | KEY, 0, 0, TD_ROLE_SCORES, TD_ROLE_NONE},
    {QUERY | ROTARY, 0, 0, TD_ROLE_ATTN_Q_ROPE, TD_ROLE_NONE},
    {KEY | ROTARY, 0, 0, TD_ROLE_ATTN_K_ROPE, TD_ROLE_NONE},
    {QUERY | NORM, 0, 0, TD_ROLE_ATTN_Q_NORM, TD_ROLE_NONE},
    {KEY | NORM, 0, 0, TD_ROLE_ATTN_K_NORM, TD_ROLE_NONE},
    {QUERY, 0, 0, TD_ROLE_ATTN_Q, TD_ROLE_NONE},
    {KEY, 0, 0, TD_ROLE_ATTN_K, TD_ROLE_NONE},
    {VALUE, 0, 0, TD_ROLE_ATTN_V, TD_ROLE_NONE},
    {0, CONTEXT, 0, TD_ROLE_CONTEXT, TD_ROLE_NONE},
    {NORM | AFTER, ATTENTION | FIRST, 0, TD_ROLE_NORM_ATTN_POST, TD_ROLE_NORM_MLP},
    {NORM | AFTER, MLP | SECOND, 0, TD_ROLE_NORM_MLP_POST, TD_ROLE_NONE},
    {NORM, ATTENTION | FIRST, 0, TD_ROLE_NORM_ATTN, TD_ROLE_NONE},
    {NORM, MLP | SECOND, 0, TD_ROLE_NORM_MLP, TD_ROLE_NONE},
    {NORM, INTO, 0, TD_ROLE_NORM_ATTN, TD_ROLE_NONE},
    {GATE | UP, 0, 0, TD_ROLE_MLP_GATE_UP, TD_ROLE_NONE},
    {0, GATE, 0, TD_ROLE_MLP_GATE, TD_ROLE_NONE},
    {0, UP, 0, TD_ROLE_MLP_UP, TD_ROLE_NONE},
    {0, DOWN, 0, TD_ROLE_MLP_DOWN, TD_ROLE_NONE},
    {0, ACTIVATION, 0, TD_ROLE_MLP_ACT, TD_ROLE_MLP_PRODUCT},
    {STREAM, MIDDLE | FIRST | ATTENTION, 0, TD_ROLE_STREAM_MID, TD_ROLE_NONE},
    {STREAM, INTO, 0, TD_ROLE_STREAM, TD_ROLE_NONE},
    {STREAM, OUT_OF | AFTER | SECOND | MLP, 0, TD_ROLE_LAYER, TD_ROLE_NONE},
    {MLP, OUT_OF | PROJECTION | SECOND, 0, TD_ROLE_MLP_DOWN, TD_ROLE_NONE},
    {MLP, INTO, 0, TD_ROLE_NORM_MLP, TD_ROLE_NONE},
    {MLP, PRODUCT | MIDDLE, NAKED, TD_ROLE_MLP_PRODUCT, TD_ROLE_MLP_ACT},
    {MLP, FIRST, 0, TD_ROLE_MLP_UP, TD_ROLE_NONE},
    {ATTENTION, OUT_OF | PROJECTION, 0, TD_ROLE_ATTN_O, TD_ROLE_CONTEXT},
    {ATTENTION, INTO, 0, TD_ROLE_NORM_ATTN, TD_ROLE_NONE},
    {ATTENTION, 0, ROTARY | NORM | STREAM, TD_ROLE_ATTN, TD_ROLE_CONTEXT},
    {MLP, 0, 0, TD_ROLE_MLP, TD_ROLE_NONE},
    {PRODUCT, 0, NAKED, TD_ROLE_MLP_PRODUCT, TD_ROLE_NONE},
    {OUT_OF, 0, 0, TD_ROLE_LAYER, TD_ROLE_NONE},
    {0, INTO, 0, TD_ROLE_STREAM, TD_ROLE_NONE},
    {NAKED | FIRST, 0, 0, TD_ROLE_STREAM_MID, TD_ROLE_NONE},
    {NAKED | SECOND, 0, 0, TD_ROLE_LAYER, TD_ROLE_NONE},
    {NAKED, 0, 0, TD_ROLE_STREAM, TD_ROLE_LAYER},
};

static const struct rule outside[] = {
    {0, LOGITS, 0, TD_ROLE_HEAD, TD_ROLE_NONE},
    {EMBEDDING | POSITION, 0, 0, TD_ROLE_EMBED_POSITION, TD_ROLE_NONE},
    {POSITION, 0, 0, TD_ROLE_EMBED_POSITION, TD_ROLE_NONE},
    {NORM | FINAL, 0, EMBEDDING, TD_ROLE_NORM_FINAL, TD_ROLE_NONE},
    {NORM | OUT_OF, 0, EMBEDDING, TD_ROLE_NORM_FINAL, TD_ROLE_NONE},
    {EMBEDDING, 0, NORM, TD_ROLE_EMBED, TD_ROLE_NONE},
    {NORM, 0, EMBEDDING, TD_ROLE_NORM_FINAL, TD_ROLE_NONE},
};

static uint32_t read_ideas(const char *text, size_t length)
{
    uint32_t ideas = 0;
    struct td_word word;
    for (size_t at = 0; td_word_next(text, length, &at, true, &word);)
        for (size_t i = 0; i < sizeof words / sizeof *words; i++)
            if (td_word_is(&word, words[i].word))
                ideas |= words[i].ideas;
    return ideas;
}

enum td_role td_role_guess(const char *text, size_t length, bool layered, enum td_role *other)
{
    const struct rule *rules = layered ? in_layer : outside;
    size_t count = layered ? sizeof in_layer / sizeof *in_layer : sizeof outside / sizeof *outside;
    uint32_t ideas = read_ideas(text, length);
    for (size_t i = 0; i < count; i++) {
        const struct rule *r = &rules[i];
        if ((ideas & r->all) == r->all && (r->any == 0 || (ideas & r->any)) && !(ideas & r->none)) {
            *other = r->other;
            return r->role;
        }
    }
    *other = TD_ROLE_NONE;
    return TD_ROLE_NONE;
}
