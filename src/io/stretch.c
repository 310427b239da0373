/* stretch.c: see stretch.h.
 *
 * A step of a lane takes up to two bytes and one symbol of any kind, 52 bits at the most, of the 57 that one
 * load gives at any bit. Steps are counted out beforehand, so that none needs to look at how much room or
 * data is left. A symbol that its entry in the tables does not settle ends the steps of all lanes for a
 * moment; in dumps that is one in some hundred.
 *
 * A lane that has come to its end is parked: with cleared tables a step of it moves nothing. The result of a
 * lane is what it had at the beginning of the block where it ended.
 */
#include "io/stretch.h"

#include "base/field.h"
#include "io/deflate_tables.h"

#include <stdlib.h>
#include <sys/mman.h>

/* What a step reads and writes at the most. */
enum { STEP_BITS = 64, STEP_BYTES = 12 };

/* Steps between two looks at whether to stop. */
enum { MOST_STEPS = 1 << 14 };

/* Behind the room: a copy that began within it, and what a step writes where nothing comes out. */
enum { SLACK = 512, LANE_BYTES = TD_DEFLATE_WINDOW + TD_STRETCH_ROOM + SLACK };

/* Bytes for each symbol that needs a look: dumps have 120 to 6000, and at 120 it is about as fast as ISA-L.
 * Text has 30 to 60, and would take twice as long. */
enum { PAYING = 96 };

/* Dumps take one copy for seven bytes. */
enum { COPIES = TD_STRETCH_ROOM / 6 };

struct copy {
    uint32_t to; /* an index of the bytes of all lanes */
    uint16_t distance, length;
};

struct place {
    uint64_t at; /* bit */
    size_t out;
    struct copy *copy; /* where the next one goes */
};

struct lane {
    struct place place, block; /* now, and at the beginning of the block */
    uint64_t limit;            /* the bit at which to end */
    size_t first, room_end;
    bool parked;
    bool last, ended; /* of its stream: the block that was begun, and all of it */
    struct copy copies[COPIES + 1];
};

struct td_stretches {
    struct td_deflate_tables tables[TD_STRETCHES];
    struct td_bits bits; /* only its data and its end */
    bool to_end;         /* the last block of a stream is decoded, too */
    struct lane lanes[TD_STRETCHES];
    size_t settled;                           /* symbols that needed a look */
    uint8_t bytes[TD_STRETCHES * LANE_BYTES]; /* of each the window, the room and the slack */
};

/* --- steps ---------------------------------------------------------------------------------------------- */

/* The bits from here on, as td_bits_peek gives them; here a place is a bit of all memory. With the address of
 * the data in it, a register is left over, and three lanes fit into those that a CPU has. */
static inline uint64_t peek(uint64_t at)
{
    uint64_t word;
    memcpy(&word, (const uint8_t *)(uintptr_t)(at / 8), sizeof word);
    return le64toh(word) >> (at % 8);
}

/* False: the next symbol has to be looked at. An entry counts its bits in the lowest six, and what it makes
 * in its highest; what else it holds is added along, and cut off in the end. A byte is written before it is
 * known whether there is one: what comes next overwrites it. */
static inline __attribute__((always_inline)) bool step(struct td_stretches *s, unsigned lane, struct place *p,
                                                       td_field_of *field)
{
    const struct td_deflate_tables *t = &s->tables[lane];
    uint64_t word = peek(p->at);
    uint32_t first = t->bytes[word & ((1 << TD_LITERAL_BITS) - 1)];
    word >>= td_entry_bits(first);
    uint32_t second = t->bytes[word & ((1 << TD_LITERAL_BITS) - 1)];
    word >>= td_entry_bits(second);
    s->bytes[p->out] = (uint8_t)(first >> 8);
    s->bytes[p->out + 1] = (uint8_t)(second >> 8);
    uint32_t taken = first + second;
    p->out += taken >> TD_ENTRY_MADE;
    uint32_t symbol = t->literals[word & ((1 << TD_LITERAL_BITS) - 1)];
    word >>= td_entry_bits(symbol);
    uint32_t distance = t->distances[word & ((1 << TD_DISTANCE_BITS) - 1)];
    if ((symbol | distance) & TD_ENTRY_SLOW) {
        p->at += td_entry_bits(taken);
        return false;
    }
    uint32_t is_copy = symbol >> 30, made = td_entry_made(symbol), more = field(word, distance);
    *p->copy = (struct copy){(uint32_t)p->out, (uint16_t)((distance >> 16) + more), (uint16_t)made};
    p->copy += is_copy;
    s->bytes[p->out] = (uint8_t)(symbol >> 8);
    p->out += made;
    p->at += td_entry_bits(taken + symbol + ((distance + (distance >> 8)) & -is_copy));
    return true;
}

/* The lane that is stuck, or TD_STRETCHES when all steps are done. */
static inline __attribute__((always_inline)) unsigned steps_of(struct td_stretches *s, uint64_t steps,
                                                               td_field_of *field)
{
    uint64_t start = (uint64_t)(uintptr_t)s->bits.data * 8;
    struct place a = s->lanes[0].place, b = s->lanes[1].place, c = s->lanes[2].place;
    unsigned stuck = TD_STRETCHES;
    a.at += start;
    b.at += start;
    c.at += start;
    for (; steps > 0 && stuck == TD_STRETCHES; steps--)
        stuck = !step(s, 0, &a, field)   ? 0
                : !step(s, 1, &b, field) ? 1
                : !step(s, 2, &c, field) ? 2
                                         : TD_STRETCHES;
    a.at -= start;
    b.at -= start;
    c.at -= start;
    s->lanes[0].place = a;
    s->lanes[1].place = b;
    s->lanes[2].place = c;
    return stuck;
}

static unsigned take_steps(struct td_stretches *s, uint64_t steps)
{
    return steps_of(s, steps, td_field);
}

TD_BMI static unsigned take_steps_bmi(struct td_stretches *s, uint64_t steps)
{
    return steps_of(s, steps, td_field_bmi);
}

/* --- blocks --------------------------------------------------------------------------------------------- */

static void park(struct td_stretches *s, unsigned index)
{
    s->lanes[index].parked = true;
    s->lanes[index].place.at = 0;
    td_deflate_tables_clear(&s->tables[index]);
}

static bool copy_stored(struct td_stretches *s, struct lane *lane, struct td_bits *b)
{
    b->at = (b->at + 7) / 8 * 8;
    if (b->at >= b->end)
        return false;
    unsigned length = td_bits_take(b, 16), check = td_bits_take(b, 16);
    if ((length ^ check) != 0xffff || b->at >= b->end || length > (b->end - b->at) / 8 ||
        lane->place.out >= lane->room_end || length > lane->room_end - lane->place.out)
        return false;
    memcpy(s->bytes + lane->place.out, b->data + b->at / 8, length);
    lane->place.out += length;
    b->at += (uint64_t)length * 8;
    return true;
}

/* The codes of the block that comes next, after any stored ones. False: the stretch ends before it. */
static bool begin_block(struct td_stretches *s, struct lane *lane, struct td_deflate_codes *codes)
{
    struct td_bits b = {s->bits.data, lane->place.at, s->bits.end};
    for (;;) {
        lane->place.at = b.at;
        lane->block = lane->place;
        lane->ended = lane->last;
        if (lane->ended || b.at >= lane->limit || b.at >= b.end)
            return false;
        lane->last = td_bits_take(&b, 1);
        if (lane->last && !s->to_end)
            return false;
        switch (td_bits_take(&b, 2)) {
        case TD_DEFLATE_STORED:
            if (!copy_stored(s, lane, &b))
                return false;
            continue;
        case TD_DEFLATE_FIXED:
            td_deflate_fixed_codes(codes);
            break;
        case TD_DEFLATE_DYNAMIC:
            if (!td_deflate_read_codes(&b, codes))
                return false;
            break;
        default:
            return false;
        }
        lane->place.at = b.at;
        return true;
    }
}

static void go_on_with_block(struct td_stretches *s, unsigned index)
{
    struct td_deflate_codes codes;
    if (begin_block(s, &s->lanes[index], &codes))
        td_deflate_tables_fill(&s->tables[index], &codes);
    else
        park(s, index);
}

/* --- the symbols that steps leave ----------------------------------------------------------------------- */

static uint32_t entry_of(const uint32_t *table, unsigned bits, uint64_t word)
{
    uint32_t entry = table[word & ((1u << bits) - 1)];
    if (entry & TD_ENTRY_LONGER)
        entry =
            table[td_entry_symbol(entry) + (word >> bits & ((1u << (TD_DEFLATE_LONGEST_CODE - bits)) - 1))];
    return entry;
}

/* How long a copy is whose symbol the entry holds; takes its extra bits. 0: there is no such symbol. */
static unsigned long_copy(uint32_t entry, uint64_t *word, unsigned *taken)
{
    static const uint16_t lengths[] = {11, 13, 15, 17, 19,  23,  27,  31,  35,  43, 51,
                                       59, 67, 83, 99, 115, 131, 163, 195, 227, 258};
    unsigned index = td_entry_symbol(entry) - 265, extra = index / 4 + 1;
    if (index >= sizeof lengths / sizeof *lengths)
        return 0;
    if (index == sizeof lengths / sizeof *lengths - 1)
        extra = 0;
    unsigned length = lengths[index] + (unsigned)(*word & ((1u << extra) - 1));
    *word >>= extra;
    *taken += extra;
    return length;
}

static bool add_copy(struct td_stretches *s, unsigned index, uint32_t entry, uint64_t word)
{
    struct place *p = &s->lanes[index].place;
    unsigned taken = td_entry_bits(entry), length = td_entry_made(entry);
    word >>= taken;
    if (entry & TD_ENTRY_SLOW)
        length = long_copy(entry, &word, &taken);
    uint32_t distance = entry_of(s->tables[index].distances, TD_DISTANCE_BITS, word);
    if (length == 0 || distance & TD_ENTRY_SLOW)
        return false;
    unsigned extra = td_entry_extra(distance);
    uint32_t more = (uint32_t)(word >> td_entry_bits(distance)) & ((1u << extra) - 1);
    *p->copy++ = (struct copy){(uint32_t)p->out, (uint16_t)((distance >> 16) + more), (uint16_t)length};
    p->out += length;
    p->at += taken + td_entry_bits(distance) + extra;
    return true;
}

static void settle(struct td_stretches *s, unsigned index)
{
    struct place *p = &s->lanes[index].place;
    uint64_t word = td_bits_peek(s->bits.data, p->at);
    uint32_t entry = entry_of(s->tables[index].literals, TD_LITERAL_BITS, word);
    if (!(entry & (TD_ENTRY_SLOW | TD_ENTRY_COPY))) {
        s->bytes[p->out++] = (uint8_t)(entry >> 8);
        p->at += td_entry_bits(entry);
    } else if (entry & TD_ENTRY_SLOW && td_entry_symbol(entry) == TD_DEFLATE_END) {
        p->at += td_entry_bits(entry);
        go_on_with_block(s, index);
    } else if (!add_copy(s, index, entry, word)) {
        park(s, index);
    }
}

/* --- what others see ------------------------------------------------------------------------------------ */

/* In huge pages where there are any: stretches are written all over, and to come by 2,600 small pages takes
 * as long as a tenth of the decoding. */
struct td_stretches *td_stretches_open(void)
{
    enum { HUGE_PAGE = 1 << 21 };
    size_t size = (sizeof(struct td_stretches) + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    struct td_stretches *s = aligned_alloc(HUGE_PAGE, size);
    if (s)
        (void)madvise(s, size, MADV_HUGEPAGE); /* else small ones do */
    return s;
}

void td_stretches_close(struct td_stretches **stretches)
{
    free(*stretches);
    *stretches = NULL;
}

/* How many steps every lane can take; 0: none is left. Parks those that can take none. */
static uint64_t count_steps(struct td_stretches *s)
{
    uint64_t steps = MOST_STEPS;
    bool any = false;
    for (unsigned i = 0; i < TD_STRETCHES; i++) {
        const struct lane *lane = &s->lanes[i];
        const struct place *p = &lane->place;
        if (lane->parked)
            continue;
        uint64_t bits = p->at < s->bits.end ? s->bits.end - p->at : 0,
                 copies = (uint64_t)(lane->copies + COPIES - p->copy);
        uint64_t room = p->out < lane->room_end ? lane->room_end - p->out : 0, most = bits / STEP_BITS;
        most = most < room / STEP_BYTES ? most : room / STEP_BYTES;
        most = most < copies ? most : copies;
        if (most == 0) {
            park(s, i);
            continue;
        }
        any = true;
        steps = steps < most ? steps : most;
    }
    return any ? steps : 0;
}

static void begin_lane(struct td_stretches *s, unsigned index, uint64_t start, uint64_t limit)
{
    struct lane *lane = &s->lanes[index];
    size_t first = (size_t)index * LANE_BYTES + TD_DEFLATE_WINDOW;
    lane->first = first;
    lane->room_end = first + TD_STRETCH_ROOM;
    lane->parked = lane->last = lane->ended = false;
    lane->place = (struct place){start, first, lane->copies};
    lane->limit = limit;
    go_on_with_block(s, index);
}

static void decode_lanes(struct td_stretches *s, const atomic_bool *stop)
{
    unsigned (*take)(struct td_stretches *, uint64_t) = td_has_bmi() ? take_steps_bmi : take_steps;
    uint64_t steps;
    while ((steps = count_steps(s)) > 0 && !(stop && atomic_load_explicit(stop, memory_order_relaxed))) {
        unsigned stuck = take(s, steps);
        if (stuck < TD_STRETCHES) {
            settle(s, stuck);
            s->settled++;
        }
    }
}

void td_stretches_decode(struct td_stretches *s, const uint8_t *data, size_t size, const uint64_t *starts,
                         unsigned count, const atomic_bool *stop)
{
    s->bits = td_bits_at(data, size, 0);
    s->settled = 0;
    s->to_end = false;
    for (unsigned i = 0; i < TD_STRETCHES; i++)
        begin_lane(s, i, i < count ? starts[i] : 0, i < count ? starts[i + 1] : 0);
    decode_lanes(s, stop);
}

void td_stretches_decode_streams(struct td_stretches *s, const uint8_t *data, size_t size,
                                 const uint64_t starts[TD_STRETCHES], const uint64_t ends[TD_STRETCHES])
{
    s->bits = td_bits_at(data, size, 0);
    s->settled = 0;
    s->to_end = true;
    for (unsigned i = 0; i < TD_STRETCHES; i++)
        begin_lane(s, i, starts[i], ends[i]);
    decode_lanes(s, NULL);
}

bool td_stretches_ended(const struct td_stretches *s, unsigned index)
{
    return s->lanes[index].ended;
}

size_t td_stretches_reach(const struct td_stretches *s, unsigned index)
{
    const struct lane *lane = &s->lanes[index];
    size_t reach = 0;
    for (const struct copy *copy = lane->copies; copy < lane->block.copy; copy++) {
        size_t before = copy->to - lane->first;
        if (before >= TD_DEFLATE_WINDOW)
            break;
        if (copy->distance > before && copy->distance - before > reach)
            reach = copy->distance - before;
    }
    return reach;
}

bool td_stretches_pay(const struct td_stretches *s)
{
    size_t made = 0;
    for (unsigned i = 0; i < TD_STRETCHES; i++)
        made += s->lanes[i].block.out - s->lanes[i].first;
    return made / PAYING >= s->settled;
}

static void make_copy(uint8_t *to, size_t distance, size_t length)
{
    const uint8_t *from = to - distance;
    if (length <= 4 && distance >= 4) { /* most */
        uint16_t start, end;
        memcpy(&start, from, 2);
        memcpy(&end, from + length - 2, 2);
        memcpy(to, &start, 2);
        memcpy(to + length - 2, &end, 2);
    } else if (distance >= length) {
        memcpy(to, from, length);
    } else {
        for (size_t i = 0; i < length; i++)
            to[i] = from[i];
    }
}

const uint8_t *td_stretches_finish(struct td_stretches *s, unsigned index,
                                   const uint8_t before[TD_DEFLATE_WINDOW], size_t *made, uint64_t *end)
{
    const struct lane *lane = &s->lanes[index];
    uint8_t *bytes = s->bytes;
    memcpy(bytes + lane->first - TD_DEFLATE_WINDOW, before, TD_DEFLATE_WINDOW);
    for (const struct copy *copy = lane->copies; copy < lane->block.copy; copy++)
        make_copy(bytes + copy->to, copy->distance, copy->length);
    *made = lane->block.out - lane->first;
    *end = lane->block.at;
    return bytes + lane->first;
}
