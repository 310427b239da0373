/* fuzz_archive.c: looks into any archive, and into archives in it, and reads every byte of every member. */
#include "base/limits.h"
#include "io/source.h"

#include <stdlib.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    return setenv("TDBG_MAX_UNPACK", "16777216", 1);
}

static void read_all(struct td_bundle *bundle, int depth)
{
    struct tdbg_error error;
    for (size_t i = 0; i < td_bundle_count(bundle); i++) {
        const struct td_source *source, *sibling;
        if (td_bundle_source(bundle, i, &source, &error) != TDBG_OK)
            continue;
        volatile uint8_t sum = 0;
        for (size_t k = 0; k < source->size; k++)
            sum = (uint8_t)(sum + source->data[k]);
        if (td_source_sibling(source, td_bundle_name(bundle, 0), &sibling, &error) == TDBG_OK && !sibling)
            abort();
        struct td_bundle *inner;
        if (depth < TD_MAX_ARCHIVE_DEPTH && td_bundle_probe(source) &&
            td_bundle_open_archive(&inner, source, NULL, &error) == TDBG_OK) {
            read_all(inner, depth + 1);
            td_bundle_close(&inner);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct td_bundle *bundle;
    struct tdbg_error error;
    if (td_bundle_open_memory(&bundle, "fuzz.tar.gz", data, size, &error) != TDBG_OK)
        return 0;
    read_all(bundle, 0);
    td_bundle_close(&bundle);
    return 0;
}
