/* blind.c: see blind.h.
 *
 *     block      final(1) kind(2), then by its kind
 *                0: padding, length(16), ~length(16), bytes
 *                1: symbols in the fixed code
 *                2: literals(5) distances(5) lengths(4), a code of code lengths (3 bits each), the code
 *                   lengths, symbols
 *     symbol     a byte, the end of the block, or: length, extra bits, distance, extra bits
 *
 * Only the first few hundred KiB of a part are read this way, so it is written to be short: a code is one
 * table of all 15-bit prefixes, and the place in the stream one number, a bit. All symbols fit the 57 bits
 * that one load gives at any bit. Whoever reads on checks the place once; a few loads later it may be MARGIN
 * further. Nobody reads nearer to the end of the data than that.
 */
#include "io/blind.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_CODE = 15,
    LITERALS = 286,
    DISTANCES = 30,
    CODE_LENGTHS = 19,
    END_OF_BLOCK = 256,
    LONGEST_MATCH = 258,
    REFERENCE = 0x8000
};

enum { STORED, FIXED, DYNAMIC };

enum { MARGIN = 32 };

/* symbol << 4 | length of its code; 0: no code begins like this */
typedef uint16_t code_table[1 << MAX_CODE];

struct td_blind {
    code_table literals, distances;
    size_t count;                                                      /* symbols that came out */
    uint16_t symbols[TD_BLIND_WINDOW + TD_BLIND_MOST + LONGEST_MATCH]; /* the first are the window before */
};

struct bits {
    const uint8_t *data;
    uint64_t at, end; /* MARGIN before the end of the data */
};

static uint64_t peek(const struct bits *b)
{
    uint64_t word;
    memcpy(&word, b->data + b->at / 8, sizeof word);
    return le64toh(word) >> (b->at % 8);
}

static unsigned take(struct bits *b, unsigned count)
{
    unsigned value = (unsigned)(peek(b) & ((1u << count) - 1));
    b->at += count;
    return value;
}

static struct bits bits_at(const uint8_t *data, size_t size, uint64_t at)
{
    return (struct bits){data, at, size < MARGIN ? 0 : (uint64_t)(size - MARGIN) * 8};
}

/* --- codes ---------------------------------------------------------------------------------------------- */

/* What of all prefixes has no code: 0 when it is complete, negative when there are too many codes. */
static int unused_prefixes(const uint8_t *lengths, unsigned count)
{
    int left = 1 << MAX_CODE;
    for (unsigned i = 0; i < count; i++)
        left -= lengths[i] ? 1 << (MAX_CODE - lengths[i]) : 0;
    return left;
}

static unsigned reversed(unsigned code, unsigned length)
{
    unsigned out = 0;
    for (; length > 0; length--, code >>= 1)
        out = out << 1 | (code & 1);
    return out;
}

/* From the short codes to the long ones: with each further bit, what is known so far holds for both its
 * values. */
static void fill_table(code_table table, const uint8_t *lengths, unsigned count)
{
    unsigned size = 1, code = 0;
    table[0] = 0;
    for (unsigned length = 1; length <= MAX_CODE; length++) {
        memcpy(table + size, table, size * sizeof *table);
        size *= 2;
        code *= 2;
        for (unsigned i = 0; i < count; i++)
            if (lengths[i] == length)
                table[reversed(code++, length)] = (uint16_t)(i << 4 | length);
    }
}

static void use_fixed_codes(struct td_blind *blind)
{
    uint8_t lengths[LITERALS + 2];
    for (unsigned i = 0; i < sizeof lengths; i++)
        lengths[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
    fill_table(blind->literals, lengths, sizeof lengths);
    memset(lengths, 5, DISTANCES);
    fill_table(blind->distances, lengths, DISTANCES);
}

/* The code of the code lengths, as a table of 7-bit prefixes. */
static bool read_length_code(struct bits *b, uint8_t table[1 << 7])
{
    static const uint8_t order[CODE_LENGTHS] = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                                11, 4,  12, 3, 13, 2, 14, 1, 15};
    uint8_t lengths[CODE_LENGTHS] = {0};
    unsigned count = take(b, 4) + 4, next = 0;
    uint64_t word = peek(b);
    for (unsigned i = 0; i < count; i++, word >>= 3) {
        if (i == 16) /* 48 bits are gone of the 57 */
            b->at += 48, word = peek(b);
        lengths[order[i]] = word & 7;
    }
    b->at += 3 * (count > 16 ? count - 16 : count);
    if (unused_prefixes(lengths, CODE_LENGTHS) != 0)
        return false;
    for (unsigned length = 1; length <= 7; length++, next <<= 1)
        for (unsigned i = 0; i < CODE_LENGTHS; i++)
            if (lengths[i] == length)
                for (unsigned at = reversed(next++, length); at < 1 << 7; at += 1u << length)
                    table[at] = (uint8_t)(i << 3 | length);
    return true;
}

static bool read_lengths(struct bits *b, const uint8_t table[1 << 7], uint8_t *lengths, unsigned count)
{
    for (unsigned i = 0; i < count;) {
        if (b->at >= b->end)
            return false;
        unsigned entry = table[peek(b) & 127], symbol = entry >> 3;
        b->at += entry & 7;
        unsigned repeat = symbol < 16    ? 1
                          : symbol == 16 ? 3 + take(b, 2)
                          : symbol == 17 ? 3 + take(b, 3)
                                         : 11 + take(b, 7);
        if (repeat > count - i || (symbol == 16 && i == 0))
            return false;
        memset(lengths + i, symbol < 16 ? (int)symbol : symbol == 16 ? lengths[i - 1] : 0, repeat);
        i += repeat;
    }
    return true;
}

/* The codes of a block of kind DYNAMIC, after its kind. Most bits that are none fail at the first checks. */
static bool read_codes(struct td_blind *blind, struct bits *b)
{
    uint8_t table[1 << 7], lengths[LITERALS + DISTANCES];
    unsigned literals = take(b, 5) + 257, distances = take(b, 5) + 1;
    if (literals > LITERALS || distances > DISTANCES || !read_length_code(b, table) ||
        !read_lengths(b, table, lengths, literals + distances) || lengths[END_OF_BLOCK] == 0 ||
        unused_prefixes(lengths, literals) != 0)
        return false;
    int unused = unused_prefixes(lengths + literals, distances);
    if (unused < 0 || (unused != 0 && unused < 1 << (MAX_CODE - 1))) /* one code alone is legal, or none */
        return false;
    fill_table(blind->literals, lengths, literals);
    fill_table(blind->distances, lengths + literals, distances);
    return true;
}

/* --- blocks --------------------------------------------------------------------------------------------- */

/* A copy whose length symbol was just read; the bits after it are in `word`. False: it is none. */
static bool copy_match(struct td_blind *blind, struct bits *b, uint64_t word, unsigned symbol)
{
    static const uint16_t lengths[] = {3,  4,  5,  6,  7,  8,  9,  10, 11,  13,  15,  17,  19,  23, 27,
                                       31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258};
    static const uint16_t distances[] = {1,    2,    3,    4,    5,    7,    9,    13,    17,    25,
                                         33,   49,   65,   97,   129,  193,  257,  385,   513,   769,
                                         1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577};
    unsigned index = symbol - END_OF_BLOCK - 1;
    unsigned extra = index < 8 || index == 28 ? 0 : index / 4 - 1;
    size_t length = lengths[index] + (size_t)(word & ((1u << extra) - 1));
    word >>= extra;
    unsigned entry = blind->distances[word & ((1u << MAX_CODE) - 1)];
    if (entry == 0)
        return false;
    word >>= entry & 15;
    unsigned far = (entry >> 4) < 4 ? 0 : (entry >> 4) / 2 - 1;
    size_t distance = distances[entry >> 4] + (size_t)(word & ((1u << far) - 1));
    b->at += extra + (entry & 15) + far;
    uint16_t *to = blind->symbols + TD_BLIND_WINDOW + blind->count;
    for (size_t i = 0; i < length; i++)
        to[i] = (to - distance)[i];
    blind->count += length;
    return true;
}

static bool decode_symbols(struct td_blind *blind, struct bits *b)
{
    while (blind->count < TD_BLIND_MOST && b->at < b->end) {
        uint64_t word = peek(b);
        unsigned entry = blind->literals[word & ((1u << MAX_CODE) - 1)], symbol = entry >> 4;
        b->at += entry & 15;
        if (symbol == END_OF_BLOCK)
            return true;
        if (entry == 0 || symbol >= LITERALS)
            return false;
        if (symbol < END_OF_BLOCK)
            blind->symbols[TD_BLIND_WINDOW + blind->count++] = (uint16_t)symbol;
        else if (!copy_match(blind, b, word >> (entry & 15), symbol))
            return false;
    }
    return false;
}

static bool copy_stored(struct td_blind *blind, struct bits *b)
{
    b->at = (b->at + 7) / 8 * 8;
    if (b->at >= b->end)
        return false;
    unsigned length = take(b, 16), check = take(b, 16);
    if ((length ^ check) != 0xffff || b->at >= b->end || length > (b->end - b->at) / 8 ||
        length > TD_BLIND_MOST - blind->count)
        return false;
    for (unsigned i = 0; i < length; i++)
        blind->symbols[TD_BLIND_WINDOW + blind->count + i] = b->data[b->at / 8 + i];
    blind->count += length;
    b->at += (uint64_t)length * 8;
    return true;
}

/* False too for the last block: nobody goes on after it. */
static bool decode_block(struct td_blind *blind, struct bits *b)
{
    if (b->at >= b->end || take(b, 1))
        return false;
    switch (take(b, 2)) {
    case STORED:
        return copy_stored(blind, b);
    case FIXED:
        use_fixed_codes(blind);
        return decode_symbols(blind, b);
    case DYNAMIC:
        return read_codes(blind, b) && decode_symbols(blind, b);
    default:
        return false;
    }
}

static bool window_known(const struct td_blind *blind)
{
    const uint16_t *last = blind->symbols + blind->count;
    unsigned all = 0;
    for (size_t i = 0; i < TD_BLIND_WINDOW; i++)
        all |= last[i];
    return !(all & REFERENCE);
}

/* --- what others see ------------------------------------------------------------------------------------ */

struct td_blind *td_blind_open(void)
{
    struct td_blind *blind = malloc(sizeof *blind);
    if (!blind)
        return NULL;
    blind->count = 0;
    for (unsigned i = 0; i < TD_BLIND_WINDOW; i++)
        blind->symbols[i] = (uint16_t)(REFERENCE | i);
    return blind;
}

void td_blind_close(struct td_blind **blind)
{
    free(*blind);
    *blind = NULL;
}

bool td_blind_find(struct td_blind *blind, const uint8_t *data, size_t size, size_t from, size_t to,
                   const atomic_bool *stop, uint64_t *start)
{
    struct bits b = bits_at(data, size, 0);
    uint64_t last = (uint64_t)to * 8 < b.end ? (uint64_t)to * 8 : b.end;
    for (uint64_t at = (uint64_t)from * 8; at < last; at++) {
        b.at = at;
        if ((peek(&b) & 7) != DYNAMIC << 1) /* not final, and of that kind */
            continue;
        if (atomic_load_explicit(stop, memory_order_relaxed))
            return false;
        b.at += 3;
        if (read_codes(blind, &b)) {
            *start = at;
            return true;
        }
    }
    return false;
}

bool td_blind_run(struct td_blind *blind, const uint8_t *data, size_t size, uint64_t start,
                  const atomic_bool *stop, uint64_t *end)
{
    struct bits b = bits_at(data, size, start);
    blind->count = 0;
    do {
        if (atomic_load_explicit(stop, memory_order_relaxed) || !decode_block(blind, &b))
            return false;
    } while (blind->count < TD_BLIND_WINDOW || !window_known(blind));
    *end = b.at;
    return true;
}

size_t td_blind_count(const struct td_blind *blind)
{
    return blind->count;
}

void td_blind_window(const struct td_blind *blind, uint8_t window[TD_BLIND_WINDOW])
{
    for (size_t i = 0; i < TD_BLIND_WINDOW; i++)
        window[i] = (uint8_t)blind->symbols[blind->count + i];
}

void td_blind_resolve(const struct td_blind *blind, const uint8_t before[TD_BLIND_WINDOW], uint8_t *out)
{
    const uint16_t *symbols = blind->symbols + TD_BLIND_WINDOW;
    for (size_t i = 0; i < blind->count; i++)
        out[i] = symbols[i] & REFERENCE ? before[symbols[i] & ~REFERENCE] : (uint8_t)symbols[i];
}
