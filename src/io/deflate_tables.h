/* deflate_tables.h: the codes of a block as tables, for decoding without asking what a symbol is.
 *
 * One entry says all about what a prefix of the stream stands for. Those of literals and short copies hold at
 * once what has to be added where; whatever is rare is marked SLOW, the sign bit, and sorted out elsewhere.
 *
 *     literals     0..5 bits of the code   8..15 the byte     26..29 how many bytes come out: 1
 *                  0..5 bits of the code                      26..29 3 to 10     30 COPY
 *                  0..5 bits of the code   8..23 the symbol                      31 SLOW
 *     distances    0..5 bits of the code   8..12 extra bits   16..30 the distance without them
 *     both         6 LONGER                8..23 where the table of longer codes begins    31 SLOW
 *     bytes        as literals, but 0 for anything else than a byte
 *
 * A code of more bits than the table has goes on in a second table, of all that may follow.
 */
#ifndef TD_IO_DEFLATE_TABLES_H
#define TD_IO_DEFLATE_TABLES_H

#include "io/deflate.h"

enum {
    TD_LITERAL_BITS = 10,
    TD_DISTANCE_BITS = 9,
    TD_LONGER_LITERAL_BITS = TD_DEFLATE_LONGEST_CODE - TD_LITERAL_BITS,
    TD_LONGER_DISTANCE_BITS = TD_DEFLATE_LONGEST_CODE - TD_DISTANCE_BITS
};

enum { TD_ENTRY_MADE = 26 };

#define TD_ENTRY_LONGER (UINT32_C(1) << 6)
#define TD_ENTRY_COPY (UINT32_C(1) << 30)
#define TD_ENTRY_SLOW (UINT32_C(1) << 31)

/* The symbol of prefixes that no code has. */
#define TD_ENTRY_NONE UINT32_C(0xffff)

/* Codes of one length follow each other, so two at least share each prefix that is too short for them. */
struct td_deflate_tables {
    uint32_t bytes[1 << TD_LITERAL_BITS];
    uint32_t distances[(1 << TD_DISTANCE_BITS) + (TD_DEFLATE_DISTANCES / 2 << TD_LONGER_DISTANCE_BITS)];
    uint32_t literals[(1 << TD_LITERAL_BITS) + (TD_DEFLATE_LITERALS / 2 << TD_LONGER_LITERAL_BITS)];
};

static inline unsigned td_entry_bits(uint32_t entry)
{
    return entry & 63;
}

static inline unsigned td_entry_made(uint32_t entry)
{
    return entry >> TD_ENTRY_MADE & 15;
}

static inline unsigned td_entry_extra(uint32_t entry)
{
    return entry >> 8 & 31;
}

static inline unsigned td_entry_symbol(uint32_t entry)
{
    return entry >> 8 & 0xffff;
}

void td_deflate_tables_fill(struct td_deflate_tables *tables, const struct td_deflate_codes *codes);

/* Tables with which every symbol takes no bits and makes nothing. */
void td_deflate_tables_clear(struct td_deflate_tables *tables);

#endif
