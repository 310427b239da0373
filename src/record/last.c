/* last.c: see last.h. */
#include "record/last.h"

#include "kernel/load.h"

#include <string.h>

enum { LINE = 64, WORDS = LINE / sizeof(uint64_t) };

/* Every word by an odd number of its own, so that no change of one word goes unseen, and none is undone by
 * the same change of another. */
static uint64_t mix(uint64_t sum, const uint8_t *line)
{
    uint64_t words[WORDS];
    memcpy(words, line, sizeof words);
    for (size_t i = 0; i < WORDS; i++)
        sum += words[i] * (UINT64_C(0x9e3779b97f4a7c15) + 2 * i);
    return sum * UINT64_C(0xd1342543de82ef95) + 1;
}

/* One line of each of 64 parts, at another place in each, so that columns have their turn as rows have. Each
 * costs a wait for memory: together they are a hundredth of what it takes to measure a large tensor. */
static uint64_t sample_of(const uint8_t *bytes, uint64_t size)
{
    enum { LINES = 64, STRIDE = 163 };
    uint64_t sum = size, part = size / LINE / LINES;
    for (uint64_t i = 0; i < LINES; i++)
        sum = mix(sum, bytes + (part * i + STRIDE * i % part) * LINE);
    return sum;
}
_Static_assert(TD_LAST_LEAST >= LINE * 64, "every part has a line, whatever the type");

void td_last_keep(struct td_last *last, const struct td_tensor *tensor, const struct tdbg_stats *stats)
{
    last->data = tensor->count >= TD_LAST_LEAST ? td_direct(tensor) : NULL;
    if (!last->data)
        return;
    last->dtype = tensor->dtype;
    last->count = tensor->count;
    last->sample = sample_of(last->data, tensor->bytes);
    last->stats = *stats;
}

bool td_last_is(const struct td_last *last, const struct td_tensor *tensor)
{
    return last->data && last->data == td_direct(tensor) && last->dtype == tensor->dtype &&
           last->count == tensor->count && last->sample == sample_of(last->data, tensor->bytes);
}
