/* tiny_reference.c: the model as its description says it, in float32. tiny_model.h has the formulas. */
#include "tiny_dump.h"
#include "tiny_model.h"

#include <math.h>
#include <string.h>

/* What one layer computes, in the order it does. */
struct state {
    float x[TOKENS][HIDDEN];
    float normed[TOKENS][HIDDEN];
    float query[TOKENS][HEADS][HEAD_DIM];
    float key[TOKENS][KV_HEADS][HEAD_DIM];
    float value[TOKENS][KV_HEADS][HEAD_DIM];
    float attended[TOKENS][HEADS][HEAD_DIM];
    float projected[TOKENS][HIDDEN];
    float mlp[TOKENS][HIDDEN];
};

static float dot(const float *a, const float *b, int count)
{
    float sum = 0;
    for (int i = 0; i < count; i++)
        sum += a[i] * b[i];
    return sum;
}

static void rms_norm(const float *x, const float *weight, float *out)
{
    float scale = 1 / sqrtf(dot(x, x, HIDDEN) / HIDDEN + NORM_EPSILON);
    for (int i = 0; i < HIDDEN; i++)
        out[i] = x[i] * scale * weight[i];
}

static void linear(const float *x, const float *weight, const float *bias, int inputs, int outputs,
                   float *out)
{
    for (int i = 0; i < outputs; i++)
        out[i] = dot(x, weight + i * inputs, inputs) + (bias ? bias[i] : 0);
}

/* Rotates the pairs (i, i + half) of one head by angles that grow with the position. */
static void rope(float *head, int position)
{
    enum { HALF = HEAD_DIM / 2 };
    for (int i = 0; i < HALF; i++) {
        float angle = (float)position * powf(ROPE_BASE, -(float)i / HALF);
        float a = head[i], b = head[i + HALF];
        head[i] = a * cosf(angle) - b * sinf(angle);
        head[i + HALF] = b * cosf(angle) + a * sinf(angle);
    }
}

/* One head of one token: a mean of the values it looks back on, weighted by softmax(q . k * scale). */
static void attend(struct state *s, int token, int head, int window, float scale)
{
    int kv_head = head / (HEADS / KV_HEADS);
    int first = window && token >= window ? token - window + 1 : 0;
    float weights[TOKENS], largest = -INFINITY, total = 0;
    for (int t = first; t <= token; t++) {
        weights[t] = dot(s->query[token][head], s->key[t][kv_head], HEAD_DIM) * scale;
        largest = fmaxf(largest, weights[t]);
    }
    for (int t = first; t <= token; t++) {
        weights[t] = expf(weights[t] - largest);
        total += weights[t];
    }
    float *out = s->attended[token][head];
    memset(out, 0, sizeof s->attended[token][head]);
    for (int t = first; t <= token; t++)
        for (int i = 0; i < HEAD_DIM; i++)
            out[i] += weights[t] / total * s->value[t][kv_head][i];
}

static void feed_forward(const struct layer *l, const float *x, float *out)
{
    float gate[MLP_DIM], up[MLP_DIM];
    linear(x, *l->gate, NULL, HIDDEN, MLP_DIM, gate);
    linear(x, *l->up, NULL, HIDDEN, MLP_DIM, up);
    for (int i = 0; i < MLP_DIM; i++)
        gate[i] = gate[i] / (1 + expf(-gate[i])) * up[i];
    linear(gate, *l->down, NULL, MLP_DIM, HIDDEN, out);
}

static void add(float to[TOKENS][HIDDEN], float what[TOKENS][HIDDEN])
{
    for (int t = 0; t < TOKENS; t++)
        for (int i = 0; i < HIDDEN; i++)
            to[t][i] += what[t][i];
}

static struct tensor hidden(const void *data)
{
    return (struct tensor){FLOAT32, 2, {TOKENS, HIDDEN}, data};
}

static struct tensor heads(const void *data, int count)
{
    return (struct tensor){FLOAT32, 3, {TOKENS, count, HEAD_DIM}, data};
}

static void attention(struct state *s, const struct layer *l, int layer, struct dump *out)
{
    for (int t = 0; t < TOKENS; t++) {
        rms_norm(s->x[t], l->attention_norm, s->normed[t]);
        linear(s->normed[t], *l->query, l->query_bias, HIDDEN, QUERY_DIM, *s->query[t]);
        linear(s->normed[t], *l->key, l->key_bias, HIDDEN, KV_DIM, *s->key[t]);
        linear(s->normed[t], *l->value, l->value_bias, HIDDEN, KV_DIM, *s->value[t]);
    }
    dump(out, layer, "post_ln_pre_attn", hidden(s->normed));
    dump(out, layer, "query", heads(s->query, HEADS));
    dump(out, layer, "key", heads(s->key, KV_HEADS));
    dump(out, layer, "value", heads(s->value, KV_HEADS));

    for (int t = 0; t < TOKENS; t++) {
        for (int h = 0; h < HEADS; h++)
            rope(s->query[t][h], t);
        for (int h = 0; h < KV_HEADS; h++)
            rope(s->key[t][h], t);
    }
    dump(out, layer, "query_final", heads(s->query, HEADS));
    dump(out, layer, "key_final", heads(s->key, KV_HEADS));
    dump(out, layer, "value_final", heads(s->value, KV_HEADS));

    float scale = 1 / sqrtf(HEAD_DIM);
    int64_t window = layer_window(layer);
    for (int t = 0; t < TOKENS; t++)
        for (int h = 0; h < HEADS; h++)
            attend(s, t, h, (int)window, scale);
    dump(out, layer, "post_attn", heads(s->attended, HEADS));
    dump(out, layer, "scaling", (struct tensor){.dtype = FLOAT32, .data = &scale});
    dump(out, layer, "sliding", (struct tensor){.dtype = INT64, .data = &window});

    for (int t = 0; t < TOKENS; t++)
        linear(*s->attended[t], *l->output, l->output_bias, QUERY_DIM, HIDDEN, s->projected[t]);
    dump(out, layer, "post_attn_pre_resid", hidden(s->projected));
}

void run_reference(const struct model *model, struct dump *out)
{
    struct state s;
    memcpy(s.x, model->input, sizeof s.x);
    for (int layer = 0; layer < model->layer_count; layer++) {
        const struct layer *l = &model->layers[layer];
        dump_layer(out, layer);
        tdbg_scope_begin(out->run, "attention");
        attention(&s, l, layer, out);
        tdbg_cost(out->run, ATTENTION_FLOPS, 0, TOKENS);
        tdbg_scope_end(out->run);
        add(s.x, s.projected);

        tdbg_scope_begin(out->run, "mlp");
        for (int t = 0; t < TOKENS; t++) {
            rms_norm(s.x[t], l->mlp_norm, s.normed[t]);
            feed_forward(l, s.normed[t], s.mlp[t]);
        }
        dump(out, layer, "pre_mlp", hidden(s.normed));
        dump(out, layer, "post_mlp", hidden(s.mlp));
        tdbg_cost(out->run, MLP_FLOPS, 0, TOKENS);
        tdbg_scope_end(out->run);
        add(s.x, s.mlp);
        tdbg_scope_end(out->run);
    }
}
