/* place.c: see place.h.
 *
 * {layer}_{stage} is tensor/stage.h's to read. Names of modules say which number is the layer by the word in
 * front of it: model.layers.3.self_attn.q_proj.weight, blk.3.attn_q.weight, transformer.h.3.ln_1,
 * layer3/attn.npy. Any other number (an expert, a member of a sequence) is part of the stage. Where a file
 * names the layer, its key is the stage (layer3.npz:query), or a part of the stage that the file names too
 * (blk.3.attn_q.safetensors:weight).
 */
#include "compare/name/place.h"

#include "compare/name/name.h"

#include <string.h>

static bool counts_layers(const struct td_word *word)
{
    static const char *const words[] = {"layers", "layer", "blk", "blocks", "block", "h", "resblocks"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (td_word_is(word, words[i]))
            return true;
    return false;
}

static int64_t number_of(const struct td_word *word)
{
    enum { MAX_DIGITS = 9 };
    int64_t value = 0;
    if (word->length > MAX_DIGITS)
        return -1;
    for (size_t i = 0; i < word->length; i++)
        value = value * 10 + (word->text[i] - '0');
    return value;
}

/* "h" is too short to trust unless it is a whole part of a dotted name. */
static bool adjoins(const struct td_word *word, const struct td_word *number)
{
    size_t gap = (size_t)(number->text - (word->text + word->length));
    char between = word->text[word->length];
    return gap == 0 ? word->length > 1 : gap == 1 && (word->length > 1 || between == '.' || between == '/');
}

static bool find_layer(const char *text, size_t length, struct td_place *out, const char *name)
{
    struct td_word before, word;
    size_t at = 0;
    if (!td_word_next(text, length, &at, true, &before))
        return false;
    for (; td_word_next(text, length, &at, true, &word); before = word) {
        if (!word.number || !counts_layers(&before) || !adjoins(&before, &word))
            continue;
        out->layer = number_of(&word);
        if (out->layer < 0)
            return false;
        out->stack = out->number = (size_t)(word.text - name);
        out->number_length = word.length;
        while (at < length && strchr("._-/]", text[at]))
            at++;
        out->stage = text + at;
        out->stage_length = length - at;
        return true;
    }
    return false;
}

static bool names_part(const char *key)
{
    static const char *const parts[] = {"weight", "bias", "input", "output"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strcmp(key, parts[i]) == 0)
            return true;
    return false;
}

struct td_place td_place_find(const char *name)
{
    struct td_stage dump = td_stage_parse(name);
    if (dump.layer >= 0)
        return (struct td_place){.layer = dump.layer,
                                 .stage_rank = dump.place,
                                 .dumped = true,
                                 .number = dump.folder_length,
                                 .number_length = strspn(name + dump.folder_length, "0123456789"),
                                 .stack = dump.folder_length,
                                 .stage = dump.stage,
                                 .stage_length = dump.stage_length};
    struct td_place out = {
        .layer = -1, .stage_rank = td_stage_places, .stage = name, .stage_length = strlen(name)};
    struct td_name parts = td_name_split(name);
    if (!parts.key) {
        find_layer(name, parts.stem, &out, name);
    } else if (!find_layer(parts.key, strlen(parts.key), &out, name) &&
               find_layer(name, parts.stem, &out, name)) {
        if (out.stage_length > 0 && names_part(parts.key)) {
            out.part = parts.key;
            return out;
        }
        out.stage = parts.key;
        out.stage_length = strlen(parts.key);
    }
    return out;
}
