/* fuzz_stretch.c: any bytes as deflate, from their start and from wherever a block seems to begin; as
 * stretches of one stream, and as streams of their own. What is made of them, given 32 KiB of zeros before
 * it, is what ISA-L makes of the same bits after the same zeros. */
#include "io/stretch.h"

#include <isa-l/igzip_lib.h>
#include <stdlib.h>
#include <string.h>

static const uint8_t zeros[TD_DEFLATE_WINDOW];

static void check(const uint8_t *made, size_t count, const uint8_t *data, size_t size, uint64_t start)
{
    struct inflate_state *state = malloc(sizeof *state);
    uint8_t *plainly = malloc(count + 1);
    if (state && plainly) {
        isal_inflate_init(state);
        if (isal_inflate_set_dict(state, (uint8_t *)(uintptr_t)zeros, sizeof zeros) != ISAL_DECOMP_OK)
            abort();
        state->next_in = (uint8_t *)(uintptr_t)(data + start / 8);
        state->avail_in = (uint32_t)(size - start / 8);
        if (start % 8) {
            state->read_in = (uint64_t)*state->next_in++ >> (start % 8);
            state->read_in_length = (int32_t)(8 - start % 8);
            state->avail_in--;
        }
        state->next_out = plainly;
        state->avail_out = (uint32_t)count;
        (void)isal_inflate(state); /* it may complain about what comes later */
        if (state->next_out != plainly + count || memcmp(made, plainly, count) != 0)
            abort();
    }
    free(state);
    free(plainly);
}

static void check_all(struct td_stretches *stretches, unsigned count, const uint8_t *data, size_t size,
                      const uint64_t *starts)
{
    for (unsigned i = 0; i < count; i++) {
        size_t made;
        uint64_t end;
        const uint8_t *bytes = td_stretches_finish(stretches, i, zeros, &made, &end);
        if (end < starts[i] || end > (uint64_t)size * 8)
            abort();
        check(bytes, made, data, size, starts[i]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const atomic_bool stop = false;
    uint64_t starts[TD_STRETCHES + 1] = {0}, ends[TD_STRETCHES] = {0};
    unsigned count = 1;
    while (count < TD_STRETCHES &&
           td_deflate_find(data, size, (size_t)(starts[count - 1] / 8) + size / 5, size, &starts[count]))
        count++;
    starts[count] = (uint64_t)size * 8;
    struct td_stretches *stretches = td_stretches_open();
    if (!stretches)
        return 0;
    td_stretches_decode(stretches, data, size, starts, count, &stop);
    check_all(stretches, count, data, size, starts);
    for (unsigned i = 0; i < count; i++)
        ends[i] = (uint64_t)size * 8;
    td_stretches_decode_streams(stretches, data, size, starts, ends);
    check_all(stretches, count, data, size, starts);
    td_stretches_close(&stretches);
    return 0;
}
