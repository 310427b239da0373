/* reader.h: what a format is to the rest of tdbg: a probe and an open.
 *
 * A reader turns bytes into descriptors: it fills a catalogue with tensors whose views point into the source
 * (or into scratch space of the source's bundle) and with names it had to skip. It reads headers only, never
 * values, and trusts nothing: every size is checked before it is used. A reader that fails leaves the
 * catalogue as the caller can no longer use it: the caller throws it away.
 *
 * To add a format: one file here, one line in registry.c, good and bad files and a fuzz target in tests/.
 */
#ifndef TD_FORMAT_READER_H
#define TD_FORMAT_READER_H

#include "io/source.h"
#include "tensor/tensor.h"

struct td_reader {
    const char *name; /* as `format` in `tdbg ls --json` */

    /* Does the content look like this format? The name may break a tie, never decide alone. */
    bool (*probe)(const struct td_source *source);

    TD_CHECK tdbg_status (*open)(const struct td_source *source, struct td_catalog *out,
                                 struct tdbg_error *error);

    /* For a reader that takes in other files of the bundle (an index and its shards): is `name` one of
     * those, given that `source` is opened? NULL: takes none. */
    bool (*covers)(const struct td_source *source, const char *name);

    /* A file lists its tensors as they were written: a dict in the order of its keys' insertion. False for
     * formats whose writers sort. */
    bool keeps_order;
};

extern const struct td_reader td_reader_torch;        /* format/torch.c: zip */
extern const struct td_reader td_reader_torch_legacy; /* format/torch_legacy.c */
extern const struct td_reader td_reader_pickle;       /* format/pickle_file.c */
extern const struct td_reader td_reader_safetensors;  /* format/safetensors.c */
extern const struct td_reader td_reader_index;        /* format/index.c: *.safetensors.index.json and kin */
extern const struct td_reader td_reader_npy;          /* format/npy.c */
extern const struct td_reader td_reader_npz;          /* format/npz.c */
extern const struct td_reader td_reader_gguf;         /* format/gguf.c */
extern const struct td_reader td_reader_onnx;         /* format/onnx.c */

/* The reader whose probe takes the source, or NULL. */
const struct td_reader *td_reader_for(const struct td_source *source);

/* All of them, in the order they are asked; NULL-terminated. */
extern const struct td_reader *const td_readers[];

#endif
