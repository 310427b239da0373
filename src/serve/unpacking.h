/* unpacking.h: a gzip upload, unpacked while it arrives.
 *
 *     network -> FOLDER/ID/NAME.part -> decoder (a thread) -> FOLDER/ID/.unpacking -> FOLDER/ID/.unpacked
 *
 * The thread reads what was written through a mapping of the file, so nothing queues in memory and the
 * network never waits for it. All of this is work done early and nothing else: a stream that is damaged or
 * cut, a bomb, a full disk or a limit end it without a word and without a trace. Opening then unpacks the
 * ordinary way, and says what is wrong.
 *
 * Only gzip: it unpacks as fast as it comes. Others would keep the sender waiting without a sign of progress.
 */
#ifndef TD_SERVE_UNPACKING_H
#define TD_SERVE_UNPACKING_H

#include <stdbool.h>
#include <stdint.h>

struct td_unpacking;

/* `file` has begun to arrive, is readable, lies in `folder` and will have at most `most_packed` bytes. NULL:
 * it is no gzip, or it cannot be done. Both descriptors are borrowed until the end. */
struct td_unpacking *td_unpacking_start(int folder, int file, uint64_t most_packed, uint64_t most_unpacked);

/* The file has so many bytes now. */
void td_unpacking_more(struct td_unpacking *unpacking, uint64_t size);

/* No more will come, as far as the connection knows; the end is told all the same. */
void td_unpacking_all(struct td_unpacking *unpacking);

/* Whole: no more will come; waits for what is left to do. Else it stops at once. The size of TD_UNPACKED in
 * the folder, or 0: there is none. */
uint64_t td_unpacking_end(struct td_unpacking **unpacking, bool whole);

#endif
