/* fuzz_onnx.c: the bytes as a model, and as a tensor in a file of its own. */
#include "fuzz_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    td_fuzz_reader(&td_reader_onnx, "fuzz.onnx", data, size);
    return td_fuzz_reader(&td_reader_onnx, "fuzz.pb", data, size);
}
