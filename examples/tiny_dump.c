/* tiny_dump.c: .npy and .safetensors, as little of them as it takes to write one tensor.
 *
 *     .npy           \x93NUMPY  1 0  u16 length  header, padded so that the data starts at 64 n   data
 *     .safetensors   u64 length  header (JSON), padded to 8 n                                     data
 *
 * Numbers are little-endian, as this machine's are.
 */
#include "tiny_dump.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { MAX_HEADER = 256 };

static const struct {
    size_t size;
    const char *npy, *safetensors, *tdbg;
} dtypes[] = {
    [FLOAT32] = {4, "<f4", "F32", "float32"},
    [BFLOAT16] = {2, NULL, "BF16", "bfloat16"},
    [INT64] = {8, "<i8", "I64", "int64"},
};

static void fail(struct dump *dump, const char *path)
{
    fprintf(stderr, "tiny_transformer: %s: %s\n", path, strerror(errno));
    dump->failed = true;
}

static size_t byte_count(const struct tensor *t)
{
    size_t bytes = dtypes[t->dtype].size;
    for (int i = 0; i < t->ndim; i++)
        bytes *= (size_t)t->shape[i];
    return bytes;
}

/* "24, 8, 16" */
static void print_shape(const struct tensor *t, char *text, size_t size)
{
    text[0] = 0;
    for (int i = 0; i < t->ndim; i++) {
        size_t used = strlen(text);
        snprintf(text + used, size - used, "%s%lld", i ? ", " : "", (long long)t->shape[i]);
    }
}

/* Pads with spaces until `prefix` bytes and the header fill a multiple of `align`; returns the new length. */
static size_t pad(char *header, size_t prefix, size_t align)
{
    size_t length = strlen(header);
    while ((prefix + length) % align)
        header[length++] = ' ';
    return length;
}

static bool write_npy(FILE *file, const struct tensor *t)
{
    char header[MAX_HEADER + 64], shape[128];
    print_shape(t, shape, sizeof shape);
    snprintf(header, MAX_HEADER, "{'descr': '%s', 'fortran_order': False, 'shape': (%s%s), }",
             dtypes[t->dtype].npy, shape, t->ndim == 1 ? "," : "");
    size_t length = pad(header, 11, 64);
    header[length++] = '\n';
    const unsigned char start[] = {
        0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (unsigned char)length, (unsigned char)(length >> 8)};
    return fwrite(start, sizeof start, 1, file) == 1 && fwrite(header, length, 1, file) == 1;
}

/* The tensor has no name of its own: the file has. */
static bool write_safetensors(FILE *file, const struct tensor *t)
{
    char header[MAX_HEADER + 8], shape[128];
    print_shape(t, shape, sizeof shape);
    snprintf(header, MAX_HEADER, "{\"\":{\"dtype\":\"%s\",\"shape\":[%s],\"data_offsets\":[0,%zu]}}",
             dtypes[t->dtype].safetensors, shape, byte_count(t));
    uint64_t length = pad(header, 0, 8);
    return fwrite(&length, sizeof length, 1, file) == 1 && fwrite(header, length, 1, file) == 1;
}

static void make_folder(struct dump *dump, const char *path)
{
    if (mkdir(path, 0777) != 0 && errno != EEXIST)
        fail(dump, path);
}

static void open_run(struct dump *dump)
{
    struct tdbg_error error;
    struct tdbg_run_options options = {.program = "tiny_transformer", .replace = true, .error = &error};
    if (tdbg_run_open(&dump->run, dump->folder, &options) == TDBG_OK)
        return;
    fprintf(stderr, "tiny_transformer: %s\n", error.message);
    dump->failed = true;
}

void dump_init(struct dump *dump, const char *out, const char *side, enum dump_format format)
{
    *dump = (struct dump){.format = format};
    int length = snprintf(dump->folder, sizeof dump->folder, "%s/%s", out, side);
    if (length >= (int)sizeof dump->folder) {
        errno = ENAMETOOLONG;
        fail(dump, out);
        return;
    }
    make_folder(dump, out);
    if (!dump->failed && format != DUMP_RUN)
        make_folder(dump, dump->folder);
    if (!dump->failed && format == DUMP_RUN)
        open_run(dump);
}

void dump_close(struct dump *dump)
{
    struct tdbg_error error;
    if (tdbg_run_end(&dump->run, &error) == TDBG_OK)
        return;
    fprintf(stderr, "tiny_transformer: %s: %s\n", dump->folder, error.message);
    dump->failed = true;
}

void dump_layer(struct dump *dump, int layer)
{
    char name[32];
    snprintf(name, sizeof name, "layers.%d", layer);
    tdbg_scope_begin(dump->run, name);
}

static void record(struct dump *dump, int layer, const char *stage, const struct tensor *t)
{
    char name[64];
    snprintf(name, sizeof name, "layers.%d.%s", layer, stage);
    tdbg_tensor(dump->run, name,
                &(struct tdbg_tensor){
                    .data = t->data, .dtype = dtypes[t->dtype].tdbg, .ndim = t->ndim, .shape = t->shape});
}

void dump(struct dump *dump, int layer, const char *stage, struct tensor tensor)
{
    if (dump->failed)
        return;
    if (dump->format == DUMP_RUN) {
        record(dump, layer, stage, &tensor);
        return;
    }
    char path[sizeof dump->folder + 64];
    const char *ending = dump->format == DUMP_NPY ? "npy" : "safetensors";
    snprintf(path, sizeof path, "%s/%d_%s.%s", dump->folder, layer, stage, ending);
    FILE *file = fopen(path, "wb");
    if (!file) {
        fail(dump, path);
        return;
    }
    bool good = dump->format == DUMP_NPY ? write_npy(file, &tensor) : write_safetensors(file, &tensor);
    good = good && fwrite(tensor.data, byte_count(&tensor), 1, file) == 1;
    if (fclose(file) != 0 || !good)
        fail(dump, path);
}
