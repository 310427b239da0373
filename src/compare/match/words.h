/* words.h: names as bags of words, whatever separates them and whatever people call the same thing.
 *
 * "self_attn.q_proj" and "attention/query" have the same words: attn, q. Numbers stand for themselves.
 */
#ifndef TD_COMPARE_MATCH_WORDS_H
#define TD_COMPARE_MATCH_WORDS_H

#include "compare/name/name.h"

#include <stdint.h>

enum { TD_MAX_WORDS = 32 }; /* of one name; the first ones count */

struct td_word_bag {
    int count;
    uint64_t words[TD_MAX_WORDS]; /* hashes, ascending, each once */
};

#define TD_HASH_START UINT64_C(0xcbf29ce484222325)
uint64_t td_hash_more(uint64_t hash, const void *bytes, size_t count);

/* Of what the word means, in whatever case; 0: it says nothing. */
uint64_t td_word_hash(const struct td_word *word);

/* Of a text that is a meaning, such as "q". */
uint64_t td_word_hash_text(const char *meaning);

/* 0 is passed over, and so is a word that is there or has no room. */
void td_word_bag_add(struct td_word_bag *bag, uint64_t word);
void td_word_bag_read(struct td_word_bag *bag, const char *text, size_t length);

/* The share of words that both have, of all that either has. */
double td_word_bag_likeness(const struct td_word_bag *a, const struct td_word_bag *b);

#endif
