/* hashing.h: the SHA-256 of an upload, taken by a thread of its own while the file arrives.
 *
 * Hashing takes about as long as receiving. Beside it, on another core, it delays nobody; the bytes are read
 * back from the page cache, so nothing queues in memory.
 */
#ifndef TD_SERVE_HASHING_H
#define TD_SERVE_HASHING_H

#include "base/status.h"

enum { TD_SHA256_LENGTH = 64 }; /* hexadecimal digits */

struct td_hashing;

/* `file` has `size` bytes so far, and is borrowed until the end. NULL: there is no thread for it. */
struct td_hashing *td_hashing_start(int file, uint64_t size);
void td_hashing_more(struct td_hashing *hashing, uint64_t size);

/* The file is whole: waits for the rest. */
TD_CHECK tdbg_status td_hashing_finish(struct td_hashing **hashing, char sha256[TD_SHA256_LENGTH + 1],
                                       struct tdbg_error *error);

/* Nobody wants to know any more. NULL is fine. */
void td_hashing_abandon(struct td_hashing **hashing);

/* Of a whole file, at once. */
TD_CHECK tdbg_status td_hash_file(int file, uint64_t size, char sha256[TD_SHA256_LENGTH + 1],
                                  struct tdbg_error *error);

#endif
