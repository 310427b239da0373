/* deflate.h: deflate below its symbols: bits, the codes of a block, and where blocks begin.
 *
 *     block      final(1) kind(2), then by its kind
 *                0: padding, length(16), ~length(16), bytes
 *                1: symbols in the fixed code
 *                2: literals(5) distances(5) lengths(4), a code of code lengths (3 bits each), the code
 *                   lengths, symbols
 *     symbol     a byte, the end of the block, or: length, extra bits, distance, extra bits
 *
 * ISA-L reads deflate from its start. What is here is for those who begin in its middle: where a block begins
 * is not marked, but hardly any other bits look like one. Nothing that is made from a guess may be believed
 * before somebody who read the stream from its start has come to the very bit.
 */
#ifndef TD_IO_DEFLATE_H
#define TD_IO_DEFLATE_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
    TD_DEFLATE_WINDOW = 1 << 15, /* how far back a copy may begin */
    TD_DEFLATE_LITERALS =
        288, /* of which the last two have codes and no meaning, and only in the fixed code */
    TD_DEFLATE_DISTANCES = 30,
    TD_DEFLATE_END = 256,
    TD_DEFLATE_LONGEST_CODE = 15,
    TD_DEFLATE_LONGEST_COPY = 258
};

enum { TD_DEFLATE_STORED, TD_DEFLATE_FIXED, TD_DEFLATE_DYNAMIC };

/* A place in the stream. Who reads on checks it against `end` once, and may then be a few loads further:
 * `end` is so far before the end of the data that they stay within it. */
struct td_bits {
    const uint8_t *data;
    uint64_t at, end;
};

struct td_bits td_bits_at(const uint8_t *data, size_t size, uint64_t at);

/* The bits from here on; 57 of them at least. */
static inline uint64_t td_bits_peek(const uint8_t *data, uint64_t at)
{
    uint64_t word;
    memcpy(&word, data + at / 8, sizeof word);
    return le64toh(word) >> (at % 8);
}

static inline unsigned td_bits_take(struct td_bits *b, unsigned count)
{
    unsigned value = (unsigned)(td_bits_peek(b->data, b->at) & ((1u << count) - 1));
    b->at += count;
    return value;
}

/* A code as it stands in the stream: codes alone are written from their upper bit on. */
static inline unsigned td_bits_reversed(unsigned code, unsigned count)
{
    code = (code & 0x5555) << 1 | (code >> 1 & 0x5555);
    code = (code & 0x3333) << 2 | (code >> 2 & 0x3333);
    code = (code & 0x0f0f) << 4 | (code >> 4 & 0x0f0f);
    code = (code & 0x00ff) << 8 | (code >> 8 & 0x00ff);
    return code >> (16 - count);
}

/* How long the code of each symbol is; 0: it has none. Literals first, distances behind them. */
struct td_deflate_codes {
    unsigned literals, distances;
    uint8_t lengths[TD_DEFLATE_LITERALS + TD_DEFLATE_DISTANCES];
};

/* Those of a block of kind DYNAMIC, after its kind. False: they are none; most bits that are no block fail at
 * the first checks. The code of the literals is complete; that of the distances too, or it has one symbol, or
 * none. */
bool td_deflate_read_codes(struct td_bits *b, struct td_deflate_codes *codes);

void td_deflate_fixed_codes(struct td_deflate_codes *codes);

/* The first bit from byte `from` on, but before byte `to`, where a block of kind DYNAMIC, and not the last,
 * seems to begin. False: there is none. */
bool td_deflate_find(const uint8_t *data, size_t size, size_t from, size_t to, uint64_t *start);

#endif
