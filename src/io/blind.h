/* blind.h: deflate, read from somewhere in its middle.
 *
 * A deflate stream copies from the 32 KiB that came out before; who begins in its middle does not know them.
 * What is copied from there is kept as a reference, and so are copies of copies:
 *
 *     symbol < 256        a byte
 *     0x8000 | position   the byte at this position of the 32 KiB before the start
 *
 * With tensors the references die out after some hundred KiB. From a block on before which 32 KiB without any
 * have come out, an ordinary decoder can go on. Once the bytes before the start are known, the references are
 * looked up.
 *
 * Where blocks begin is not marked, and a guess may be wrong: nothing that comes out may be believed before
 * somebody who read the stream from its start has come to the very bit.
 */
#ifndef TD_IO_BLIND_H
#define TD_IO_BLIND_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TD_BLIND_WINDOW = 1 << 15 };

/* When so much has come out and the references still live, it is given up. */
enum { TD_BLIND_MOST = 1 << 21 };

struct td_blind;

struct td_blind *td_blind_open(void); /* NULL for no memory */
void td_blind_close(struct td_blind **blind);

/* The first bit from byte `from` on, but before byte `to`, where a block with codes of its own seems to
 * begin. False: there is none, or `stop` was set. */
bool td_blind_find(struct td_blind *blind, const uint8_t *data, size_t size, size_t from, size_t to,
                   const atomic_bool *stop, uint64_t *start);

/* Decodes from the block at bit `start` until the window is known. `end` gets the bit after the last block.
 * False: that did not happen, before the data or the stream ended. */
bool td_blind_run(struct td_blind *blind, const uint8_t *data, size_t size, uint64_t start,
                  const atomic_bool *stop, uint64_t *end);

/* How many bytes came out, and the last TD_BLIND_WINDOW of them. */
size_t td_blind_count(const struct td_blind *blind);
void td_blind_window(const struct td_blind *blind, uint8_t window[TD_BLIND_WINDOW]);

/* All of them, given the bytes before the start. */
void td_blind_resolve(const struct td_blind *blind, const uint8_t before[TD_BLIND_WINDOW], uint8_t *out);

#endif
