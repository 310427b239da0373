/* scout.h: a second thread for a deflate stream, which has to be read in order.
 *
 *     the reader   ──────────────────────►|                       then goes on from where the scout came to
 *     the scout             finds a block |──blind──►─────ISA-L─────►|
 *
 * The scout is sent some MiB ahead. It finds the beginning of a block, decodes blindly until it knows 32 KiB
 * (blind.h), and from there with ISA-L like anybody. When the reader comes to the very bit where the scout
 * began, what the scout made is right, and the reader takes over its output and its state. When it passes
 * without stopping there, or the scout found nothing, time was lost and nothing else.
 *
 * Memory is bounded: a scout stops when its room is full, and the reader continues from there.
 */
#ifndef TD_IO_SCOUT_H
#define TD_IO_SCOUT_H

#include <isa-l/igzip_lib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct td_scout;

struct td_scout *td_scout_open(void); /* NULL for no memory */
void td_scout_close(struct td_scout **scout);

/* Begins at byte `from` or later, and reads no further than `size`. The data is borrowed until it is back.
 * False: it cannot start. */
bool td_scout_send(struct td_scout *scout, const uint8_t *data, size_t size, size_t from);

/* The bit where it began; waits until it knows. False: nowhere. */
bool td_scout_start(struct td_scout *scout, uint64_t *bit);

/* Whether it has done what it can. */
bool td_scout_is_back(struct td_scout *scout);

/* Calls it back at once; what it made is lost. Fine when it is not away. */
void td_scout_recall(struct td_scout *scout);

/* Waits for it to come back. True: it made `size` bytes, given the 32 KiB before its start; they stay until
 * it is sent again. The state, which continues the stream after them, is exchanged for `state`. */
bool td_scout_return(struct td_scout *scout, const uint8_t *before, const uint8_t **made, size_t *size,
                     struct inflate_state **state);

#endif
