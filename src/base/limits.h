/* limits.h: every cap tdbg puts on what a file may ask of it, and why it is where it is.
 *
 * A cap is not a buffer size: memory is taken as it is needed and never before a claim was checked against
 * the bytes that are really there. The caps stop what no honest file does.
 */
#ifndef TD_BASE_LIMITS_H
#define TD_BASE_LIMITS_H

#include "tdbg.h"

/* torch allows 64 dimensions, numpy 32; nobody dumps more than 8. A view carries its shape inline. */
#define TD_MAX_DIMS TDBG_MAX_DIMS

/* Elements of one tensor. 2^48 float32 are a petabyte: more is a lie, and products stay far from overflow. */
#define TD_MAX_ELEMENTS (INT64_C(1) << 48)

/* Elements of a view whose rows share elements (an unfolded signal): a few bytes can pose as a petabyte that
 * way, and computing over it would take days. Expanded axes do not count: they are never walked. */
#define TD_MAX_OVERLAPPING (INT64_C(1) << 34)

/* Elements that one look at a tensor (a picture, a profile) may walk over, as nobody can stop it: some twenty
 * seconds. A sparse or expanded tensor of a few bytes can claim far more. Of such a tensor a comparison walks
 * over as many, which takes a minute. */
#define TD_MAX_LOOK (INT64_C(1) << 34)

/* Bins of a histogram: each thread holds its own counts of them. */
#define TD_MAX_BINS 65536

/* Entries of a sparse tensor that are not in order, or name a place twice: they cost memory to sort. */
#define TD_MAX_UNSORTED (1 << 22)

/* Tensors in one input, and names reported as skipped. A state dict of a large mixture of experts holds 10^5.
 */
#define TD_MAX_TENSORS (UINT64_C(1) << 22)

/* Length of one tensor's name. Longer ones are a way to eat memory, not a way to name. */
#define TD_MAX_NAME 4096

/* Descriptors, names, pickle graphs and headers of one input. The largest honest headers seen are 30 MiB. */
#define TD_MAX_METADATA (UINT64_C(1) << 30)

/* A safetensors header; its own library refuses more than this. */
#define TD_MAX_SAFETENSORS_HEADER (UINT64_C(100) << 20)

/* Files one index may name; the largest models come in a few hundred. */
#define TD_MAX_SHARDS (1 << 16)

/* Values in one JSON text (a tensor of a safetensors header is about eight): jansson takes up to 120 bytes
 * for each, so this keeps its tree within TD_MAX_METADATA. */
#define TD_MAX_JSON_VALUES (UINT64_C(8) << 20)

/* The text header of a .npy. numpy itself asks for a special permit beyond 10,000 bytes. */
#define TD_MAX_NPY_HEADER (UINT64_C(1) << 20)

/* Depth of nested containers (dicts in dicts, JSON, protobuf messages). Recursion stays within 64 KiB. */
#define TD_MAX_DEPTH 64

/* Archives within archives. */
#define TD_MAX_ARCHIVE_DEPTH 3

/* Files in one folder or archive, and the folders' depth. */
#define TD_MAX_MEMBERS (UINT64_C(1) << 20)
#define TD_MAX_FOLDER_DEPTH 32

/* What the compressed members of one input may unpack to in the spill file: a guard against bombs.
 * TDBG_MAX_UNPACK overrides it. */
#define TD_MAX_UNPACK (UINT64_C(256) << 30)

/* What an xz header may ask for. `xz -9` needs 65 MiB; dictionaries of gigabytes are legal and pointless. */
#define TD_MAX_XZ_MEMORY (UINT64_C(128) << 20)

/* Deflate cannot honestly exceed 1032 : 1; small members get the benefit of the doubt. */
#define TD_MAX_INFLATE_RATIO 1100

/* Values on the stack of the pickle machine: picklers build lists and dicts in batches of 1000, only tuples
 * lie there as a whole. */
#define TD_MAX_PICKLE_STACK (UINT64_C(1) << 24)

/* Values a pickle may refer to again: a memory snapshot of a GiB has some 50 million. */
#define TD_MAX_PICKLE_MEMO (UINT64_C(1) << 27)

/* Python's own values (numbers, strings) in a pickle that are listed by name. A pickle with more is no dump
 * of tensors but something like a memory snapshot; its tensors are listed all the same. */
#define TD_MAX_PYTHON_VALUES (UINT64_C(1) << 17)

/* Scopes of a recorded run, by the way they were reached. A model has thousands. */
#define TD_MAX_SCOPES (1 << 22)

/* Scopes and call stacks that hold memory: some 400 bytes each in the analysis. A large Python program has
 * 10^5 distinct stacks. */
#define TD_MAX_MEMORY_OWNERS (1 << 20)

/* The values of a memory snapshot of PyTorch, in bytes for each byte of the file, and in all. Events of its
 * history are not among them; blocks and frames are dicts of a few entries that take 60 bytes or more in the
 * file. */
#define TD_MAX_SNAPSHOT_RATIO UINT64_C(16)
#define TD_MAX_SNAPSHOT_GRAPH (UINT64_C(16) << 30)

#endif
