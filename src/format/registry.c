/* registry.c: the formats, in the order they are asked. Strong magic first, guesses last. */
#include "format/reader.h"

const struct td_reader *const td_readers[] = {
    &td_reader_npy,         &td_reader_gguf,  &td_reader_torch, &td_reader_torch_legacy, &td_reader_npz,
    &td_reader_safetensors, &td_reader_index, &td_reader_onnx,  &td_reader_pickle,       NULL,
};

const struct td_reader *td_reader_for(const struct td_source *source)
{
    for (size_t i = 0; td_readers[i]; i++)
        if (td_readers[i]->probe(source))
            return td_readers[i];
    return NULL;
}
