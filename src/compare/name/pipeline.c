/* pipeline.c: see pipeline.h.
 *
 *     pp_rank_01/model.safetensors:layers.0.…      pp1/…   pp_1/…   pipeline_stage_1/…   stage1/…
 *     pp_rank_01.safetensors:layers.0.…
 *     mp_rank_03_001/…                             Megatron: tensor-parallel rank 3, pipeline rank 1
 *     001/…                                        what is left of it when the ranks 0 to 3 were joined
 *
 * A rank that holds layers 4 to 7 may call them so, and then nothing is to be done: numbers are changed only
 * where every rank has a layer 0. The layers of a rank follow those of the ranks before it.
 */
#include "compare/name/pipeline.h"

#include "compare/name/name.h"

#include <stdlib.h>

enum { MOST_RANKS = 1024 };

static int64_t number_of(const struct td_word *word)
{
    enum { MOST_DIGITS = 4 };
    int64_t value = 0;
    for (size_t i = 0; i < word->length && i < MOST_DIGITS; i++)
        value = value * 10 + (word->text[i] - '0');
    return word->number && word->length <= MOST_DIGITS && value < MOST_RANKS ? value : -1;
}

static bool names_pipeline(const struct td_word *word)
{
    return td_word_is(word, "pp") || td_word_is(word, "pipeline") || td_word_is(word, "stage");
}

/* The rank that the folders tell, or the file where that is not the tensor's own name; -1: none. */
static int64_t rank_of(const char *name)
{
    enum { MEGATRON_DIGITS = 3 };
    struct td_name parts = td_name_split(name);
    size_t length = parts.key ? parts.stem : parts.folder, at = 0;
    struct td_word word, before = {0}, second = {0};
    bool counting = false;
    for (; td_word_next(name, length, &at, true, &word); second = before, before = word) {
        bool tensor_rank = before.number && td_word_is(&second, "rank");
        bool left_over =
            word.text == name && word.length == MEGATRON_DIGITS && at < length && name[at] == '/';
        if (word.number && (counting || tensor_rank || left_over))
            return number_of(&word);
        counting =
            names_pipeline(&word) || (counting && (td_word_is(&word, "rank") || td_word_is(&word, "stage")));
    }
    return -1;
}

struct ranks {
    int64_t count;
    int64_t layers[MOST_RANKS]; /* the highest number, plus one */
    bool from_zero[MOST_RANKS];
};

/* Every layer is of a rank, every rank from 0 on is there, and all count from 0. */
static bool count_layers(const struct td_side *side, struct ranks *out)
{
    for (size_t i = 0; i < side->count; i++) {
        const struct td_item *item = &side->items[i];
        if (item->layer < 0)
            continue;
        int64_t rank = rank_of(item->name);
        if (rank < 0)
            return false;
        if (rank + 1 > out->count)
            out->count = rank + 1;
        if (item->layer + 1 > out->layers[rank])
            out->layers[rank] = item->layer + 1;
        out->from_zero[rank] = out->from_zero[rank] || item->layer == 0;
    }
    for (int64_t r = 0; r < out->count; r++)
        if (!out->from_zero[r])
            return false;
    return out->count > 1;
}

bool td_pipeline_renumber(struct td_side *side)
{
    struct ranks *ranks = calloc(1, sizeof *ranks);
    if (!ranks)
        return false;
    if (count_layers(side, ranks)) {
        int64_t start[MOST_RANKS] = {0};
        for (int64_t r = 1; r < ranks->count; r++)
            start[r] = start[r - 1] + ranks->layers[r - 1];
        for (size_t i = 0; i < side->count; i++)
            if (side->items[i].layer >= 0)
                side->items[i].layer += start[rank_of(side->items[i].name)];
        side->pipeline_ranks = ranks->count;
        side->second_rank_begins = start[1];
    }
    free(ranks);
    return true;
}
