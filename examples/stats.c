/* stats.c: the first program one writes with libtdbg: the mean of every tensor of a file, folder or archive.
 *
 *     cc stats.c -o stats $(pkg-config --cflags --libs tdbg)
 *     ./stats model.safetensors
 */
#include <tdbg.h>

#include <stdio.h>

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: stats PATH\n");
        return 2;
    }
    struct tdbg_error error;
    tdbg_input *input = NULL;
    if (tdbg_input_open(&input, argv[1], &error) != TDBG_OK) {
        fprintf(stderr, "stats: %s\n", error.message);
        return 2;
    }
    int status = 0;
    for (size_t i = 0; i < tdbg_input_count(input); i++) {
        struct tdbg_info info = tdbg_input_info(input, i);
        struct tdbg_stats stats;
        if (tdbg_input_stats(input, i, &stats, &error) == TDBG_OK) {
            printf("%s %s mean %g\n", info.name, info.dtype, stats.mean);
        } else {
            fprintf(stderr, "stats: %s: %s\n", info.name, error.message);
            status = 2;
        }
    }
    for (size_t i = 0; i < tdbg_input_skipped(input); i++) {
        const char *name, *reason;
        tdbg_input_skip(input, i, &name, &reason);
        fprintf(stderr, "stats: %s skipped: %s\n", name, reason);
    }
    tdbg_input_close(&input);
    return status;
}
