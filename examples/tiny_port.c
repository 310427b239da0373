/* tiny_port.c: the same model, ported: as an inference engine would compute it, and not without mistakes.
 *
 * Every tensor is stored as bfloat16 and has a batch axis in front; heads come before tokens ([1, heads,
 * tokens, dim]), so that each head's work is contiguous. Sums are float32. Values that should agree with the
 * reference therefore agree but for rounding, in another order: what a tensor debugger has to see through.
 *
 * Each bug is one line marked by its name, so that what tdbg says can be held against what was done.
 */
#include "tiny_dump.h"
#include "tiny_model.h"

#include <math.h>
#include <string.h>

/* The upper half of a float32. */
typedef uint16_t bf16;

static float load(bf16 value)
{
    uint32_t bits = (uint32_t)value << 16;
    float out;
    memcpy(&out, &bits, sizeof out);
    return out;
}

/* Rounds to nearest, ties to even. The model has no NaN to take care of. */
static bf16 store(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (bf16)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

struct state {
    bf16 x[TOKENS][HIDDEN];
    bf16 normed[TOKENS][HIDDEN];
    bf16 query[HEADS][TOKENS][HEAD_DIM];
    bf16 key[KV_HEADS][TOKENS][HEAD_DIM];
    bf16 value[KV_HEADS][TOKENS][HEAD_DIM];
    bf16 attended[HEADS][TOKENS][HEAD_DIM];
    bf16 projected[TOKENS][HIDDEN];
    bf16 mlp[TOKENS][HIDDEN];
    enum bug bug; /* of the layer at hand */
};

/* A weight as the engine has it: loaded from a bfloat16 checkpoint. */
static float weight(float value)
{
    return load(store(value));
}

static float dot(const bf16 *x, const float *w, int count)
{
    float sum = 0;
    for (int i = 0; i < count; i++)
        sum += load(x[i]) * weight(w[i]);
    return sum;
}

static void rms_norm(const bf16 *x, const float *w, bf16 *out)
{
    float sum = 0;
    for (int i = 0; i < HIDDEN; i++)
        sum += load(x[i]) * load(x[i]);
    float scale = 1 / sqrtf(sum / HIDDEN + NORM_EPSILON);
    for (int i = 0; i < HIDDEN; i++)
        out[i] = store(load(x[i]) * scale * weight(w[i]));
}

/* All tokens through one head's share of a projection. */
static void project_head(struct state *s, float matrix[][HIDDEN], const float *bias,
                         bf16 out[TOKENS][HEAD_DIM])
{
    for (int t = 0; t < TOKENS; t++)
        for (int i = 0; i < HEAD_DIM; i++)
            out[t][i] = store(dot(s->normed[t], matrix[i], HIDDEN) + (bias ? weight(bias[i]) : 0));
}

static void project(struct state *s, struct layer *l)
{
    for (int h = 0; h < HEADS; h++) {
        int row = h * HEAD_DIM;
        bool biased = s->bug != BUG_MISSING_QUERY_BIAS;
        project_head(s, l->query + row, biased ? l->query_bias + row : NULL, s->query[h]);
    }
    for (int h = 0; h < KV_HEADS; h++) {
        int row = h * HEAD_DIM;
        bool swapped = s->bug == BUG_SWAPPED_KV;
        project_head(s, l->key + row, l->key_bias + row, swapped ? s->value[h] : s->key[h]);
        project_head(s, l->value + row, l->value_bias + row, swapped ? s->key[h] : s->value[h]);
    }
}

static void rope(bf16 *head, int position, enum bug bug)
{
    enum { HALF = HEAD_DIM / 2 };
    bool interleaved = bug == BUG_ROPE_INTERLEAVED;
    for (int i = 0; i < HALF; i++) {
        bf16 *first = head + (interleaved ? 2 * i : i), *second = first + (interleaved ? 1 : HALF);
        float angle = (float)position * powf(ROPE_BASE, -(float)i / HALF);
        float a = load(*first), b = load(*second);
        *first = store(a * cosf(angle) - b * sinf(angle));
        *second = store(b * cosf(angle) + a * sinf(angle));
    }
}

/* Writes the keys and values of a head one slot late, as into a cache whose position is off. */
static void shift_tokens(bf16 head[TOKENS][HEAD_DIM])
{
    bf16 last[HEAD_DIM];
    memcpy(last, head[TOKENS - 1], sizeof last);
    memmove(head[1], head[0], (TOKENS - 1) * sizeof head[0]);
    memcpy(head[0], last, sizeof last);
}

static void rotate(struct state *s)
{
    for (int h = 0; h < HEADS; h++)
        for (int t = 0; t < TOKENS; t++)
            rope(s->query[h][t], t, s->bug);
    for (int h = 0; h < KV_HEADS; h++) {
        for (int t = 0; t < TOKENS; t++)
            rope(s->key[h][t], t, s->bug);
        if (s->bug == BUG_TOKEN_SHIFT) {
            shift_tokens(s->key[h]);
            shift_tokens(s->value[h]);
        }
    }
}

/* Softmax over the scores of one row, in place, between two tokens. */
static void softmax(float *scores, int first, int end)
{
    float largest = -INFINITY, total = 0;
    for (int t = first; t < end; t++)
        largest = fmaxf(largest, scores[t]);
    for (int t = first; t < end; t++)
        total += scores[t] = expf(scores[t] - largest);
    for (int t = first; t < end; t++)
        scores[t] /= total;
}

static void attend(struct state *s, int head, int window, float scale)
{
    int kv = s->bug == BUG_KV_TILED ? head % KV_HEADS : head / (HEADS / KV_HEADS);
    for (int t = 0; t < TOKENS; t++) {
        int end = t + 1;
        if (s->bug == BUG_MASK_OFF_BY_ONE && end < TOKENS)
            end++;
        int first = window && t >= window ? t - window + 1 : 0;
        float scores[TOKENS];
        for (int u = first; u < end; u++) {
            scores[u] = 0;
            for (int i = 0; i < HEAD_DIM; i++)
                scores[u] += load(s->query[head][t][i]) * load(s->key[kv][u][i]);
            scores[u] *= scale;
        }
        softmax(scores, first, end);
        for (int i = 0; i < HEAD_DIM; i++) {
            float sum = 0;
            for (int u = first; u < end; u++)
                sum += scores[u] * load(s->value[kv][u][i]);
            s->attended[head][t][i] = store(sum);
        }
    }
}

/* Heads back beside each other, then the output projection. */
static void merge_heads(struct state *s, const struct layer *l)
{
    for (int t = 0; t < TOKENS; t++) {
        bf16 merged[QUERY_DIM];
        for (int h = 0; h < HEADS; h++)
            memcpy(merged + h * HEAD_DIM, s->attended[h][t], sizeof s->attended[h][t]);
        for (int i = 0; i < HIDDEN; i++)
            s->projected[t][i] = store(dot(merged, l->output[i], QUERY_DIM) + weight(l->output_bias[i]));
    }
}

static void feed_forward(struct state *s, const struct layer *l)
{
    for (int t = 0; t < TOKENS; t++) {
        bf16 inner[MLP_DIM];
        for (int i = 0; i < MLP_DIM; i++) {
            bool swapped = s->bug == BUG_GATE_UP_SWAPPED;
            float gate = dot(s->normed[t], swapped ? l->up[i] : l->gate[i], HIDDEN);
            float up = dot(s->normed[t], swapped ? l->gate[i] : l->up[i], HIDDEN);
            inner[i] = store(gate / (1 + expf(-gate)) * up);
        }
        for (int i = 0; i < HIDDEN; i++)
            s->mlp[t][i] = store(dot(inner, l->down[i], MLP_DIM));
    }
}

static void add(bf16 to[TOKENS][HIDDEN], bf16 what[TOKENS][HIDDEN])
{
    for (int t = 0; t < TOKENS; t++)
        for (int i = 0; i < HIDDEN; i++)
            to[t][i] = store(load(to[t][i]) + load(what[t][i]));
}

static struct tensor hidden(const void *data)
{
    return (struct tensor){BFLOAT16, 3, {1, TOKENS, HIDDEN}, data};
}

static struct tensor heads(const void *data, int count)
{
    return (struct tensor){BFLOAT16, 4, {1, count, TOKENS, HEAD_DIM}, data};
}

static void attention(struct state *s, struct layer *l, int layer, struct dump *out)
{
    for (int t = 0; t < TOKENS; t++)
        rms_norm(s->x[t], l->attention_norm, s->normed[t]);
    project(s, l);
    dump(out, layer, "post_ln_pre_attn", hidden(s->normed));
    dump(out, layer, "query", heads(s->query, HEADS));
    dump(out, layer, "key", heads(s->key, KV_HEADS));
    dump(out, layer, "value", heads(s->value, KV_HEADS));

    rotate(s);
    dump(out, layer, "query_final", heads(s->query, HEADS));
    dump(out, layer, "key_final", heads(s->key, KV_HEADS));
    dump(out, layer, "value_final", heads(s->value, KV_HEADS));

    float scale = s->bug == BUG_WRONG_SCALE ? 1.0f / HEAD_DIM : 1 / sqrtf(HEAD_DIM);
    int64_t window = s->bug == BUG_WINDOW_IGNORED ? 0 : layer_window(layer);
    for (int h = 0; h < HEADS; h++)
        attend(s, h, (int)window, scale);
    dump(out, layer, "post_attn", heads(s->attended, HEADS));
    dump(out, layer, "scaling", (struct tensor){.dtype = FLOAT32, .data = &scale});
    dump(out, layer, "sliding", (struct tensor){.dtype = INT64, .data = &window});

    merge_heads(s, l);
    dump(out, layer, "post_attn_pre_resid", hidden(s->projected));
}

void run_port(const struct model *model, enum bug bug, int first_bad_layer, struct dump *out)
{
    struct state s = {0};
    for (int t = 0; t < TOKENS; t++)
        for (int i = 0; i < HIDDEN; i++)
            s.x[t][i] = store(model->input[t][i]);
    for (int layer = 0; layer < model->layer_count; layer++) {
        s.bug = layer >= first_bad_layer ? bug : BUG_NONE;
        struct layer *l = &model->layers[s.bug == BUG_STALE_WEIGHTS && layer > 0 ? layer - 1 : layer];
        dump_layer(out, layer);
        tdbg_scope_begin(out->run, "attention");
        attention(&s, l, layer, out);
        tdbg_cost(out->run, ATTENTION_FLOPS, 0, TOKENS);
        tdbg_scope_end(out->run);
        add(s.x, s.projected);

        tdbg_scope_begin(out->run, "mlp");
        for (int t = 0; t < TOKENS; t++)
            rms_norm(s.x[t], l->mlp_norm, s.normed[t]);
        feed_forward(&s, l);
        dump(out, layer, "pre_mlp", hidden(s.normed));
        dump(out, layer, "post_mlp", hidden(s.mlp));
        tdbg_cost(out->run, MLP_FLOPS, 0, TOKENS);
        tdbg_scope_end(out->run);
        add(s.x, s.mlp);
        tdbg_scope_end(out->run);
    }
}
