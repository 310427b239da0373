/* fuzz_torch_legacy.c: any bytes as a file of torch's format before 1.6. */
#include "fuzz_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return td_fuzz_reader(&td_reader_torch_legacy, "fuzz.pth", data, size);
}
