/* print.h: a few values of a tensor by which it is recognised on the other side.
 *
 * Of an activation, some tokens with all their channels. Three things are kept of them:
 *
 *     values   the channels in the order they stand in; a bounded number of them
 *     gram     products of the tokens with each other, over all channels: the order of channels and heads
 * does not show, and the gram of a fused tensor is the sum of the grams of its parts even     the same with
 * every channel divided by its norm, so that a few large ones do not decide alone; a factor for each channel
 * does not show either
 *
 * A tensor without an axis of tokens has one row: a sample of all its elements. Which axis holds the tokens
 * is read from the sizes; where two axes have that size there are two readings.
 */
#ifndef TD_COMPARE_MATCH_PRINT_H
#define TD_COMPARE_MATCH_PRINT_H

#include "compare/name/item.h"

enum { TD_PRINT_TOKENS = 8, TD_PRINT_CHANNELS = 1024, TD_PRINT_READINGS = 2, TD_PRINT_GRAM = 36 };

/* The tokens that are looked at, and by which sizes an axis is known to hold them. */
struct td_tokens {
    int64_t length; /* of the sequence; 0: the side has none */
    int64_t batch;  /* sequences, of which the first is looked at; on an axis of their own, or in front of the
                       tokens on theirs */
    int count;
    int64_t at[TD_PRINT_TOKENS];
};

struct td_print {
    int64_t width; /* channels of a token; of a tensor without tokens all its elements */
    int rows;      /* tokens; 1: no axis of tokens */
    int kept;      /* values of each row */
    bool constant; /* all values are one, or none is finite: it is like nothing */
    double norm;   /* of the values that were kept */
    double *values;
    double gram[TD_PRINT_GRAM], even[TD_PRINT_GRAM];
};

/* How alike two prints are. Errors are relative to the first, infinite where the prints cannot be compared
 * so.
 */
struct td_likeness {
    double error, gram_error, even_error;
    double norm_error; /* of the norms of the tokens alone: a rotation leaves them */
    double cosine;     /* of the values, without its sign */
    double shape;      /* of the two grams, centred: 1 where the tokens lie to each other in the same way */
    double ratio;      /* of the norms, b to a */
    int count;         /* values that were compared */
};

/* Tokens to look at on two sides with sequences of these lengths; token 0 is passed over, as it often gets
 * what no other does. */
void td_tokens_choose(struct td_tokens *a, struct td_tokens *b, int64_t length_a, int64_t length_b,
                      int64_t batch);

/* Elements that td_print_take reads of an item at most, and values that it keeps. */
struct td_print_cost {
    int64_t read, kept;
};
struct td_print_cost td_print_cost(const struct td_item *item, const struct td_tokens *tokens);

/* The readings of an item: how many there are, none where it has several parts or cannot be read. Values come
 * from the arena. */
int td_print_take(struct td_print out[TD_PRINT_READINGS], const struct td_item *item,
                  const struct td_tokens *tokens, struct td_arena *arena);

struct td_likeness td_print_compare(const struct td_print *a, const struct td_print *b);

/* A whole and the sum of its parts, as far as grams tell. */
struct td_likeness td_print_compare_sum(const struct td_print *whole, const struct td_print *const *parts,
                                        int count);

/* Bit for bit the same. */
bool td_print_equal(const struct td_print *a, const struct td_print *b);

#endif
