/* words.c: see words.h. */
#include "compare/match/words.h"

#include <string.h>

uint64_t td_hash_more(uint64_t hash, const void *bytes, size_t count)
{
    const unsigned char *p = bytes;
    for (size_t i = 0; i < count; i++)
        hash = (hash ^ p[i]) * UINT64_C(0x100000001b3);
    return hash;
}

uint64_t td_word_hash_text(const char *meaning)
{
    return td_hash_more(TD_HASH_START, meaning, strlen(meaning));
}

/* Words that different people use for one thing. An empty meaning: the word says nothing. */
static const struct {
    const char *word, *meaning;
} synonyms[] = {
    {"attention", "attn"}, {"attn", "attn"},      {"self", ""},           {"layernorm", "norm"},
    {"ln", "norm"},        {"rmsnorm", "norm"},   {"ffn", "mlp"},         {"feedforward", "mlp"},
    {"embed", "embd"},     {"embedding", "embd"}, {"embeddings", "embd"}, {"emb", "embd"},
    {"output", "out"},     {"query", "q"},        {"key", "k"},           {"value", "v"},
    {"proj", ""},          {"projection", ""},    {"linear", ""},         {"model", ""},
    {"module", ""},        {"layers", ""},        {"layer", ""},          {"blk", ""},
    {"block", ""},         {"blocks", ""},        {"transformer", ""},    {"weight", ""},
    {"bias", ""},          {"position", "pos"},   {"positional", "pos"},  {"token", "tok"},
    {"tokens", "tok"},     {"gradient", "grad"},
};

uint64_t td_word_hash(const struct td_word *word)
{
    for (size_t i = 0; i < sizeof synonyms / sizeof *synonyms; i++)
        if (td_word_is(word, synonyms[i].word))
            return *synonyms[i].meaning ? td_word_hash_text(synonyms[i].meaning) : 0;
    uint64_t hash = TD_HASH_START;
    for (size_t i = 0; i < word->length; i++) {
        char c = word->text[i];
        if (c >= 'A' && c <= 'Z')
            c = (char)(c - 'A' + 'a');
        hash = td_hash_more(hash, &c, 1);
    }
    return hash ? hash : 1;
}

void td_word_bag_add(struct td_word_bag *bag, uint64_t word)
{
    int at = 0;
    while (at < bag->count && bag->words[at] < word)
        at++;
    if (word == 0 || bag->count == TD_MAX_WORDS || (at < bag->count && bag->words[at] == word))
        return;
    memmove(bag->words + at + 1, bag->words + at, (size_t)(bag->count - at) * sizeof bag->words[0]);
    bag->words[at] = word;
    bag->count++;
}

void td_word_bag_read(struct td_word_bag *bag, const char *text, size_t length)
{
    struct td_word word;
    for (size_t at = 0; td_word_next(text, length, &at, false, &word);)
        td_word_bag_add(bag, td_word_hash(&word));
}

double td_word_bag_likeness(const struct td_word_bag *a, const struct td_word_bag *b)
{
    int common = 0;
    for (int i = 0, j = 0; i < a->count && j < b->count;) {
        common += a->words[i] == b->words[j];
        bool left = a->words[i] <= b->words[j], right = b->words[j] <= a->words[i];
        i += left;
        j += right;
    }
    int all = a->count + b->count - common;
    return all ? (double)common / all : 0;
}
