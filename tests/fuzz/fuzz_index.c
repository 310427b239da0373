/* fuzz_index.c: an index and its shards, as the members of a zip. See fuzz_reader.h. */
#include "fuzz_reader.h"

static void open_indices(struct td_bundle *archive)
{
    struct tdbg_error error;
    for (size_t i = 0; i < td_bundle_count(archive); i++) {
        const struct td_source *source;
        struct td_catalog catalog;
        td_catalog_init(&catalog);
        if (td_bundle_source(archive, i, &source, &error) == TDBG_OK && td_reader_index.probe(source)) {
            (void)td_reader_index.covers(source, td_bundle_name(archive, 0));
            if (td_reader_index.open(source, &catalog, &error) == TDBG_OK)
                td_fuzz_values(&catalog);
        }
        td_catalog_release(&catalog);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tdbg_error error;
    struct td_bundle *file = NULL, *archive = NULL;
    const struct td_source *source;
    if (td_bundle_open_memory(&file, "fuzz.zip", data, size, &error) != TDBG_OK)
        return 0;
    if (td_bundle_source(file, 0, &source, &error) == TDBG_OK && td_bundle_probe(source) &&
        td_bundle_open_archive(&archive, source, NULL, &error) == TDBG_OK)
        open_indices(archive);
    td_bundle_close(&archive);
    td_bundle_close(&file);
    return 0;
}
