/* deflate.c: see deflate.h.
 *
 * Blocks are searched for by their first 13 bits, 48 places at a time: not final, of kind DYNAMIC, 286
 * literals and 30 distances at the most. One place in nine passes. Of these one in some hundred has a
 * complete code of code lengths, and the rest is read as a header.
 */
#include "io/deflate.h"

enum { MARGIN = 32 };

enum { CODE_LENGTHS = 19, LONGEST_LENGTH_CODE = 7, MOST_LITERALS = 286 };

struct td_bits td_bits_at(const uint8_t *data, size_t size, uint64_t at)
{
    return (struct td_bits){data, at, size < MARGIN ? 0 : (uint64_t)(size - MARGIN) * 8};
}

/* --- codes ---------------------------------------------------------------------------------------------- */

/* What of all prefixes has no code: 0 when it is complete, negative when there are too many codes. */
static int unused_prefixes(const uint8_t *lengths, unsigned count)
{
    int left = 1 << TD_DEFLATE_LONGEST_CODE;
    for (unsigned i = 0; i < count; i++)
        left -= lengths[i] ? 1 << (TD_DEFLATE_LONGEST_CODE - lengths[i]) : 0;
    return left;
}

/* The lengths of the codes of code lengths, three bits each, from their count on. */
static uint64_t peek_lengths(const uint8_t *data, uint64_t at, unsigned *count)
{
    *count = (unsigned)(td_bits_peek(data, at) & 15) + 4;
    return td_bits_peek(data, at + 4) & ((UINT64_C(1) << (3 * *count)) - 1);
}

/* Whether these are the lengths of a complete code: one of n bits takes one prefix in 2^n. Added up two by
 * two, because this is asked for one place in nine of a search. */
static bool is_complete(uint64_t lengths)
{
#define WITH(first) first, first + 64, first + 32, first + 16, first + 8, first + 4, first + 2, first + 1
    static const uint8_t prefixes[64] = {WITH(0), WITH(64), WITH(32), WITH(16),
                                         WITH(8), WITH(4),  WITH(2),  WITH(1)};
#undef WITH
    unsigned sum = 0;
    for (unsigned i = 0; i < (CODE_LENGTHS + 1) / 2; i++, lengths >>= 6)
        sum += prefixes[lengths & 63];
    return sum == 1 << LONGEST_LENGTH_CODE;
}

/* The code of the code lengths as a table of all prefixes: symbol << 3 | length of its code. */
static bool read_length_code(struct td_bits *b, uint8_t table[1 << LONGEST_LENGTH_CODE])
{
    static const uint8_t order[CODE_LENGTHS] = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                                11, 4,  12, 3, 13, 2, 14, 1, 15};
    uint8_t lengths[CODE_LENGTHS] = {0};
    unsigned count, next = 0;
    uint64_t word = peek_lengths(b->data, b->at, &count);
    if (!is_complete(word))
        return false;
    b->at += 4 + 3 * count;
    for (unsigned i = 0; i < count; i++, word >>= 3)
        lengths[order[i]] = word & 7;
    for (unsigned length = 1; length <= LONGEST_LENGTH_CODE; length++, next <<= 1)
        for (unsigned i = 0; i < CODE_LENGTHS; i++)
            if (lengths[i] == length)
                for (unsigned at = td_bits_reversed(next++, length); at < 1 << LONGEST_LENGTH_CODE;
                     at += 1u << length)
                    table[at] = (uint8_t)(i << 3 | length);
    return true;
}

static bool read_lengths(struct td_bits *b, const uint8_t table[1 << LONGEST_LENGTH_CODE], uint8_t *lengths,
                         unsigned count)
{
    for (unsigned i = 0; i < count;) {
        if (b->at >= b->end)
            return false;
        unsigned entry = table[td_bits_peek(b->data, b->at) & 127], symbol = entry >> 3;
        b->at += entry & 7;
        unsigned repeat = symbol < 16    ? 1
                          : symbol == 16 ? 3 + td_bits_take(b, 2)
                          : symbol == 17 ? 3 + td_bits_take(b, 3)
                                         : 11 + td_bits_take(b, 7);
        if (repeat > count - i || (symbol == 16 && i == 0))
            return false;
        memset(lengths + i, symbol < 16 ? (int)symbol : symbol == 16 ? lengths[i - 1] : 0, repeat);
        i += repeat;
    }
    return true;
}

bool td_deflate_read_codes(struct td_bits *b, struct td_deflate_codes *codes)
{
    uint8_t table[1 << LONGEST_LENGTH_CODE];
    unsigned literals = td_bits_take(b, 5) + 257, distances = td_bits_take(b, 5) + 1;
    if (literals > MOST_LITERALS || distances > TD_DEFLATE_DISTANCES || !read_length_code(b, table) ||
        !read_lengths(b, table, codes->lengths, literals + distances) ||
        codes->lengths[TD_DEFLATE_END] == 0 || unused_prefixes(codes->lengths, literals) != 0)
        return false;
    codes->literals = literals;
    codes->distances = distances;
    int all = 1 << TD_DEFLATE_LONGEST_CODE, unused = unused_prefixes(codes->lengths + literals, distances);
    return unused == 0 || unused == all ||
           (unused == all / 2 && memchr(codes->lengths + literals, 1, distances));
}

void td_deflate_fixed_codes(struct td_deflate_codes *codes)
{
    codes->literals = TD_DEFLATE_LITERALS;
    codes->distances = TD_DEFLATE_DISTANCES;
    for (unsigned i = 0; i < TD_DEFLATE_LITERALS; i++)
        codes->lengths[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
    memset(codes->lengths + TD_DEFLATE_LITERALS, 5, TD_DEFLATE_DISTANCES);
}

/* --- where blocks begin --------------------------------------------------------------------------------- */

enum { PLACES = 48 };

/* Bit i: what begins at bit i may be a block that is not final, of kind 2, and neither its count of literals
 * nor that of distances has its upper four bits set. For the first PLACES bits. */
static uint64_t candidates(uint64_t word)
{
    uint64_t kind = ~word & ~(word >> 1) & word >> 2;
    uint64_t pairs = word & word >> 1, fours = pairs & pairs >> 2;
    return kind & ~(fours >> 4) & ~(fours >> 9) & ((UINT64_C(1) << PLACES) - 1);
}

static bool is_block(const uint8_t *data, size_t size, uint64_t at)
{
    enum { KIND = 3, COUNTS = 10 };
    struct td_deflate_codes codes;
    unsigned count;
    if (!is_complete(peek_lengths(data, at + KIND + COUNTS, &count)))
        return false;
    struct td_bits b = td_bits_at(data, size, at + KIND);
    return td_deflate_read_codes(&b, &codes);
}

bool td_deflate_find(const uint8_t *data, size_t size, size_t from, size_t to, uint64_t *start)
{
    uint64_t end = td_bits_at(data, size, 0).end, last = (uint64_t)to * 8 < end ? (uint64_t)to * 8 : end;
    for (uint64_t at = (uint64_t)from * 8; at < last; at += PLACES)
        for (uint64_t left = candidates(td_bits_peek(data, at)); left; left &= left - 1) {
            uint64_t place = at + (uint64_t)__builtin_ctzll(left);
            if (place < last && is_block(data, size, place)) {
                *start = place;
                return true;
            }
        }
    return false;
}
