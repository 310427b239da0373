/* fuzz_blind.c: any bytes as deflate from its middle. What is decoded blindly, given 32 KiB of zeros before
 * it, is what ISA-L makes of the same bits after the same zeros. */
#include "io/blind.h"

#include <isa-l/igzip_lib.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = TD_BLIND_MOST + 512 };

static const uint8_t zeros[TD_BLIND_WINDOW];

static void check(const struct td_blind *blind, const uint8_t *data, size_t size, uint64_t start)
{
    size_t count = td_blind_count(blind);
    struct inflate_state *state = malloc(sizeof *state);
    uint8_t *blindly = malloc(MOST), *plainly = malloc(MOST);
    if (state && blindly && plainly) {
        td_blind_resolve(blind, zeros, blindly);
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
        if (state->next_out != plainly + count || memcmp(blindly, plainly, count) != 0)
            abort();
    }
    free(state);
    free(blindly);
    free(plainly);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const atomic_bool stop = false;
    struct td_blind *blind = td_blind_open();
    uint64_t start, end;
    if (blind && size > 0 && td_blind_run(blind, data, size, 0, &stop, &end))
        check(blind, data, size, 0);
    if (blind && td_blind_find(blind, data, size, size / 4, size, &stop, &start) &&
        td_blind_run(blind, data, size, start, &stop, &end))
        check(blind, data, size, start);
    td_blind_close(&blind);
    return 0;
}
