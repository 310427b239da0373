/* tiny_model.c: the weights both implementations are given. */
#include "tiny_model.h"

#include <math.h>
#include <stdlib.h>

/* splitmix64: a few lines, and the same numbers on every machine. */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* Close enough to normal: the sum of twelve uniform numbers has variance 1. */
static float next_normal(uint64_t *state)
{
    float sum = -6;
    for (int i = 0; i < 12; i++)
        sum += (float)(next_random(state) >> 40) / (float)(1 << 24);
    return sum;
}

static void fill(float *values, int count, float mean, float deviation, uint64_t *state)
{
    for (int i = 0; i < count; i++)
        values[i] = mean + deviation * next_normal(state);
}

/* Scaled so that outputs are about as large as inputs, however wide the layer. */
static void fill_matrix(float *matrix, int outputs, int inputs, uint64_t *state)
{
    fill(matrix, outputs * inputs, 0, 1 / sqrtf((float)inputs), state);
}

static void fill_layer(struct layer *l, uint64_t *state)
{
    fill(l->attention_norm, HIDDEN, 1, 0.1f, state);
    fill_matrix(*l->query, QUERY_DIM, HIDDEN, state);
    fill(l->query_bias, QUERY_DIM, 0, 0.5f, state);
    fill_matrix(*l->key, KV_DIM, HIDDEN, state);
    fill(l->key_bias, KV_DIM, 0, 0.5f, state);
    fill_matrix(*l->value, KV_DIM, HIDDEN, state);
    fill(l->value_bias, KV_DIM, 0, 0.5f, state);
    fill_matrix(*l->output, HIDDEN, QUERY_DIM, state);
    fill(l->output_bias, HIDDEN, 0, 0.1f, state);
    fill(l->mlp_norm, HIDDEN, 1, 0.1f, state);
    fill_matrix(*l->gate, MLP_DIM, HIDDEN, state);
    fill_matrix(*l->up, MLP_DIM, HIDDEN, state);
    fill_matrix(*l->down, HIDDEN, MLP_DIM, state);
}

bool model_init(struct model *model, int layer_count, uint64_t seed)
{
    model->layer_count = layer_count;
    model->layers = calloc((size_t)layer_count, sizeof *model->layers);
    if (!model->layers)
        return false;
    uint64_t state = seed;
    fill(*model->input, TOKENS * HIDDEN, 0, 1, &state);
    for (int i = 0; i < layer_count; i++)
        fill_layer(&model->layers[i], &state);
    return true;
}

void model_release(struct model *model)
{
    free(model->layers);
    model->layers = NULL;
}

int layer_window(int index)
{
    return index % 2 == 0 ? WINDOW : 0;
}
