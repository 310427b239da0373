/* writing.h: an upload goes into its file from a thread of its own, piece by piece: a connection that writes
 * itself leaves the network waiting for as long again.
 */
#ifndef TD_SERVE_WRITING_H
#define TD_SERVE_WRITING_H

#include <stddef.h>
#include <stdint.h>

/* What is written at a time. Pieces of the network's size, at odd places, take half as long again, and pieces
 * of 2 MiB three times as long: the system then looks for memory in one piece. */
enum { TD_WRITING_PIECE = 1 << 19 };

struct td_writing;

/* Goes on with a file that has `size` bytes. `written` hears, on the thread, how many it has by now. NULL: it
 * could not begin. */
struct td_writing *td_writing_start(int file, uint64_t size, void (*written)(void *context, uint64_t size),
                                    void *context);

/* Takes a full piece, and leaves an empty one in its place; waits while it is far behind. Both are of malloc.
 * 0, or the errno of what could not be written, from then on. */
int td_writing_take(struct td_writing *writing, uint8_t **piece);

/* Waits until all is written, and ends; 0 or the errno. */
int td_writing_end(struct td_writing **writing);

#endif
