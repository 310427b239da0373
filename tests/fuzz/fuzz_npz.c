/* fuzz_npz.c: see fuzz_reader.h. */
#include "fuzz_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return td_fuzz_reader(&td_reader_npz, "fuzz.npz", data, size);
}
