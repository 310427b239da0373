/* fuzz_pickle_file.c: any bytes as a plain pickle, up to the values of the tensors found in it. */
#include "fuzz_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return td_fuzz_reader(&td_reader_pickle, "fuzz.pkl", data, size);
}
