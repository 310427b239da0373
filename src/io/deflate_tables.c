/* deflate_tables.c: see deflate_tables.h. A block has some ten thousand symbols, so its tables must not cost
 * much: they grow by doubling, from the short codes to the long ones. With each further bit, what is known so
 * far holds for both its values.
 */
#include "io/deflate_tables.h"

/* Those that fit an entry with all that has to be known of them: 3 to 10 bytes, no extra bits. */
enum { FIRST_COPY = 257, LAST_SHORT_COPY = 264 };

static uint32_t literal_entry(unsigned symbol, unsigned bits)
{
    if (symbol < TD_DEFLATE_END)
        return bits | symbol << 8 | UINT32_C(1) << TD_ENTRY_MADE;
    if (symbol >= FIRST_COPY && symbol <= LAST_SHORT_COPY)
        return bits | (symbol - FIRST_COPY + 3) << TD_ENTRY_MADE | TD_ENTRY_COPY;
    return bits | symbol << 8 | TD_ENTRY_SLOW;
}

static uint32_t distance_entry(unsigned symbol, unsigned bits)
{
    static const uint16_t distances[TD_DEFLATE_DISTANCES] = {
        1,   2,   3,   4,   5,   7,    9,    13,   17,   25,   33,   49,   65,    97,    129,
        193, 257, 385, 513, 769, 1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577};
    unsigned extra = symbol < 4 ? 0 : symbol / 2 - 1;
    return bits | extra << 8 | (uint32_t)distances[symbol] << 16;
}

/* The symbols that have codes, by the length of those; counts[n]: how many of length n. */
static void sort_symbols(const uint8_t *lengths, unsigned count, uint16_t *symbols,
                         unsigned counts[TD_DEFLATE_LONGEST_CODE + 1])
{
    unsigned next[TD_DEFLATE_LONGEST_CODE + 1] = {0};
    memset(counts, 0, (TD_DEFLATE_LONGEST_CODE + 1) * sizeof *counts);
    for (unsigned i = 0; i < count; i++)
        counts[lengths[i]]++;
    counts[0] = 0;
    for (unsigned n = 1; n < TD_DEFLATE_LONGEST_CODE; n++)
        next[n + 1] = next[n] + counts[n];
    for (unsigned i = 0; i < count; i++)
        if (lengths[i])
            symbols[next[lengths[i]]++] = (uint16_t)i;
}

/* Where in the table behind `prefix` a longer code goes on; makes that table when it is the first. */
static uint32_t *longer(uint32_t *table, unsigned bits, unsigned prefix, unsigned *used)
{
    unsigned more = TD_DEFLATE_LONGEST_CODE - bits;
    if (!(table[prefix] & TD_ENTRY_LONGER)) {
        table[prefix] = TD_ENTRY_SLOW | TD_ENTRY_LONGER | *used << 8;
        *used += 1u << more;
    }
    return table + td_entry_symbol(table[prefix]);
}

static inline __attribute__((always_inline)) void fill(uint32_t *table, unsigned bits, const uint8_t *lengths,
                                                       unsigned count,
                                                       uint32_t (*entry)(unsigned symbol, unsigned bits))
{
    uint16_t symbols[TD_DEFLATE_LITERALS], *symbol = symbols;
    unsigned counts[TD_DEFLATE_LONGEST_CODE + 1], size = 1, code = 0, used = 1u << bits;
    sort_symbols(lengths, count, symbols, counts);
    table[0] = TD_ENTRY_SLOW | TD_ENTRY_NONE << 8;
    for (unsigned n = 1; n <= bits; n++, size *= 2) {
        memcpy(table + size, table, size * sizeof *table);
        code *= 2;
        for (unsigned i = 0; i < counts[n]; i++)
            table[td_bits_reversed(code++, n)] = entry(*symbol++, n);
    }
    for (unsigned n = bits + 1; n <= TD_DEFLATE_LONGEST_CODE; n++) {
        code *= 2;
        for (unsigned i = 0; i < counts[n]; i++) {
            unsigned all = td_bits_reversed(code++, n);
            uint32_t value = entry(*symbol++, n), *rest = longer(table, bits, all & (size - 1), &used);
            for (unsigned at = all >> bits; at < 1u << (TD_DEFLATE_LONGEST_CODE - bits);
                 at += 1u << (n - bits))
                rest[at] = value;
        }
    }
}

void td_deflate_tables_fill(struct td_deflate_tables *tables, const struct td_deflate_codes *codes)
{
    fill(tables->literals, TD_LITERAL_BITS, codes->lengths, codes->literals, literal_entry);
    fill(tables->distances, TD_DISTANCE_BITS, codes->lengths + codes->literals, codes->distances,
         distance_entry);
    for (unsigned i = 0; i < 1 << TD_LITERAL_BITS; i++) {
        bool byte = tables->literals[i] >> TD_ENTRY_MADE == 1;
        tables->bytes[i] = byte ? tables->literals[i] : 0;
    }
}

void td_deflate_tables_clear(struct td_deflate_tables *tables)
{
    memset(tables->bytes, 0, sizeof tables->bytes);
    memset(tables->literals, 0, sizeof *tables->literals << TD_LITERAL_BITS);
    memset(tables->distances, 0, sizeof *tables->distances << TD_DISTANCE_BITS);
}
