/* fuzz_pickle.c: any bytes through the pickle machine, in an arena so small that its limit is met too. */
#include "fuzz_reader.h"

#include "pickle/pickle.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct td_arena arena;
    struct td_pickle pickle;
    struct tdbg_error error;
    td_arena_init(&arena, 1 << 20);
    if (td_pickle_parse(data, size, NULL, &arena, &pickle, &error) == TDBG_OK && pickle.consumed > size)
        abort();
    td_arena_release(&arena);
    return 0;
}
