/* fuzz_memory_snapshot.c: any pickle as a snapshot of PyTorch's CUDA allocator, replayed and reported. */
#include "fuzz_reader.h"

#include "analyse/memory_story.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct td_memory_wish wish = {0};
    struct td_memory_book book = {0};
    struct tdbg_error error;
    if (td_memory_read_pickle(&book, data, size, &wish, NULL, &error) == TDBG_OK) {
        for (size_t i = 0; i < book.count; i++) {
            const struct td_memory_report *r = &book.stories[i].report;
            if (r->views[TD_MOMENT_PEAK].live.bytes < r->views[TD_MOMENT_END].live.bytes)
                abort();
        }
    }
    td_memory_book_release(&book);
    return 0;
}
