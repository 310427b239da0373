/* fuzz_reader.c: see fuzz_reader.h. */
#include "fuzz_reader.h"

#include "kernel/load.h"
#include "kernel/stats.h"

#include <stdlib.h>

enum {
    EDGE = 64,          /* elements read at each end of a tensor */
    MOST_TENSORS = 256, /* looked into; a file may list far more */
    SMALL = 1 << 14     /* elements of a tensor whose statistics are taken */
};

static struct td_pool *one_thread(void)
{
    static struct td_pool
        *pool; /* lives as long as the process: starting threads per run would be all we do */
    if (!pool && td_pool_open(&pool, 1, NULL) != TDBG_OK)
        abort();
    return pool;
}

static void touch_values(const struct td_tensor *tensor)
{
    double values[EDGE];
    struct tdbg_error error;
    int64_t n = tensor->count < EDGE ? tensor->count : EDGE;
    /* Refusing is fine; the sanitizers watch for anything worse. */
    if (td_load_f64(tensor, 0, n, values, &error) != TDBG_OK)
        return;
    if (td_load_f64(tensor, tensor->count - n, n, values, &error) != TDBG_OK)
        return;
    struct tdbg_stats stats;
    if (tensor->count <= SMALL && td_stats(tensor, one_thread(), NULL, &stats, &error) == TDBG_OK &&
        stats.count != (uint64_t)tensor->count)
        abort();
}

void td_fuzz_values(const struct td_catalog *catalog)
{
    for (size_t i = 0; i < catalog->count && i < MOST_TENSORS; i++)
        touch_values(&catalog->tensors[i]);
}

int td_fuzz_reader(const struct td_reader *reader, const char *name, const uint8_t *data, size_t size)
{
    struct tdbg_error error;
    struct td_bundle *bundle = NULL;
    const struct td_source *source;
    if (td_bundle_open_memory(&bundle, name, data, size, &error) != TDBG_OK)
        return 0;
    struct td_catalog catalog;
    td_catalog_init(&catalog);
    if (td_bundle_source(bundle, 0, &source, &error) == TDBG_OK && reader->probe(source) &&
        reader->open(source, &catalog, &error) == TDBG_OK)
        td_fuzz_values(&catalog);
    td_catalog_release(&catalog);
    td_bundle_close(&bundle);
    return 0;
}
