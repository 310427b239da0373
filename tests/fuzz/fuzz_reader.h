/* fuzz_reader.h: the one way a reader is fuzzed. A target is
 *
 *     int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
 *     {
 *         return td_fuzz_reader(&td_reader_npy, "fuzz.npy", data, size);
 *     }
 *
 * The bytes become a bundle in memory; the reader probes and opens it; then values are read at both ends of
 * every tensor, and statistics of the small ones, so that a view that lies about its bytes is caught too.
 */
#ifndef TD_FUZZ_READER_H
#define TD_FUZZ_READER_H

#include "format/reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* `name` is what the source is called, for readers that look at it. */
int td_fuzz_reader(const struct td_reader *reader, const char *name, const uint8_t *data, size_t size);

/* Values and statistics of the catalogue's tensors, within bounds that keep one run short. */
void td_fuzz_values(const struct td_catalog *catalog);

#endif
