/* stretch.h: stretches of a deflate stream, three decoded at once by one thread.
 *
 * Where a symbol begins is known once the one before it has been looked up; and whether it is a byte or a
 * copy, in dumps of numbers nobody can guess. So a decoder mostly waits, for its tables or for a wrong guess.
 * This one takes a step in each of three places of the stream in turn, and no branch depends on what a symbol
 * is:
 *
 *     stream    ──►|── stretch 0 ──►|── stretch 1 ──►|── stretch 2 ──►|
 *     bytes        ab···c··d·ef···g    literals at their places, gaps where copies go
 *     copies       (place, distance, length) …
 *
 * A copy may reach back before its stretch, so copies are made afterwards, stretch after stretch, when what
 * is before them is known. They are few.
 *
 * A stretch begins with a block and ends before one. Where its first block was guessed (deflate.h), the
 * stretch before it must end there, or it is worth nothing.
 */
#ifndef TD_IO_STRETCH_H
#define TD_IO_STRETCH_H

#include "io/deflate.h"

#include <stdatomic.h>

enum {
    TD_STRETCHES = 3,
    TD_STRETCH_ROOM = 3 << 19 /* bytes that one can make */
};

struct td_stretches;

struct td_stretches *td_stretches_open(void); /* NULL for no memory */
void td_stretches_close(struct td_stretches **stretches);

/* Decodes `count` stretches from bits starts[0], starts[1], …, the last of them to starts[count]. Each ends
 * with the first block that reaches the start of the next; or earlier, before a block for which there is no
 * room, no data, that is damaged, or the last of the stream. */
void td_stretches_decode(struct td_stretches *stretches, const uint8_t *data, size_t size,
                         const uint64_t *starts, unsigned count, const atomic_bool *stop);

/* The same with streams of their own, as the members of a zip are: each from its start, a bit, to its last
 * block, or as far as there is room; a block that begins at its end or behind it is none of its own. An end
 * of 0: none. */
void td_stretches_decode_streams(struct td_stretches *stretches, const uint8_t *data, size_t size,
                                 const uint64_t starts[TD_STRETCHES], const uint64_t ends[TD_STRETCHES]);

/* Whether the last block of its stream was decoded. */
bool td_stretches_ended(const struct td_stretches *stretches, unsigned index);

/* How many bytes before its start a stretch copies from. */
size_t td_stretches_reach(const struct td_stretches *stretches, unsigned index);

/* Whether that was faster than an ordinary decoder. It is not with text, whose copies are long. */
bool td_stretches_pay(const struct td_stretches *stretches);

/* What one made, given the bytes before it, which are before the result, too; once for each. `end` gets the
 * bit it came to. */
const uint8_t *td_stretches_finish(struct td_stretches *stretches, unsigned index,
                                   const uint8_t before[TD_DEFLATE_WINDOW], size_t *made, uint64_t *end);

#endif
