/* fuzz_torch.c: any bytes as a zip that torch.save might have written. */
#include "fuzz_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return td_fuzz_reader(&td_reader_torch, "fuzz.pth", data, size);
}
