/* tiny_transformer.c: dumps to try tdbg on. One small model, run by two implementations that should agree.
 *
 *     tiny_transformer demo --bug wrong-scale
 *     tdbg ls demo/a
 *     tdbg stats demo/b
 *
 * The reference (tiny_reference.c) writes demo/a: float32, tokens first, .npy. The port (tiny_port.c) writes
 * demo/b: bfloat16, heads first, .safetensors, with a bug of your choice. Both call one function to be
 * looked at, dump() in tiny_dump.h: that is all it takes to make a model debuggable.
 *
 * With --record both are recorded through tdbg's C API instead, with the time of every layer:
 *
 *     tiny_transformer runs --record --steps 20
 *     tdbg diff runs/a runs/b
 *     tdbg profile runs/a
 */
#include "tiny_dump.h"
#include "tiny_model.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name, *summary;
} bugs[BUGS] = {
    [BUG_NONE] = {"none", "a faithful port: only rounding differs"},
    [BUG_MISSING_QUERY_BIAS] = {"missing-query-bias", "the bias of the query projection is left out"},
    [BUG_WRONG_SCALE] = {"wrong-scale", "scores are divided by the head dimension, not by its root"},
    [BUG_SWAPPED_KV] = {"swapped-kv", "keys and values change places"},
    [BUG_ROPE_INTERLEAVED] = {"rope-interleaved", "rotary pairs are neighbours, not halves"},
    [BUG_MASK_OFF_BY_ONE] = {"mask-off-by-one", "each token sees one token of the future"},
    [BUG_TOKEN_SHIFT] = {"token-shift", "keys and values sit one token late"},
    [BUG_KV_TILED] = {"kv-tiled", "query heads take turns on the key/value heads, not in groups"},
    [BUG_WINDOW_IGNORED] = {"window-ignored", "the sliding window is forgotten"},
    [BUG_STALE_WEIGHTS] = {"stale-weights", "layers run with the weights of the layer before"},
    [BUG_GATE_UP_SWAPPED] = {"gate-up-swapped", "gate and up change places in the MLP"},
};

struct options {
    const char *out;
    enum bug bug;
    int layers, first_bad_layer, steps;
    bool record;
    uint64_t seed;
};

static void print_help(void)
{
    puts("usage: tiny_transformer OUT_DIR [--bug NAME] [--layers N] [--seed N] [--from N] [--record [--steps "
         "N]]\n"
         "\n"
         "Runs a tiny transformer twice and writes what each stage of each layer computed:\n"
         "a reference into OUT_DIR/a, a port with a bug into OUT_DIR/b.\n"
         "\n"
         "  --bug NAME   what is wrong with the port (default missing-query-bias)\n"
         "  --from N     the first layer that has the bug (default 1)\n"
         "  --layers N   layers of the model (default 4, at most 1000)\n"
         "  --seed N     of the weights (default 1)\n"
         "  --record     record two runs instead of writing files\n"
         "  --steps N    how often a recorded model runs (default 1)\n"
         "\n"
         "bugs:");
    for (int i = 0; i < BUGS; i++)
        printf("  %-20s %s\n", bugs[i].name, bugs[i].summary);
}

static bool parse_number(const char *text, uint64_t most, uint64_t *out)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (errno || end == text || *end || *text == '-' || value > most)
        return false;
    *out = value;
    return true;
}

static bool parse_bug(const char *name, enum bug *out)
{
    for (int i = 0; i < BUGS; i++)
        if (strcmp(bugs[i].name, name) == 0) {
            *out = (enum bug)i;
            return true;
        }
    return false;
}

/* Leaves the program for --help and for what makes no sense. */
static struct options parse_options(int argc, char **argv)
{
    static const struct option known[] = {
        {"bug", required_argument, NULL, 'b'},   {"from", required_argument, NULL, 'f'},
        {"help", no_argument, NULL, 'h'},        {"layers", required_argument, NULL, 'l'},
        {"seed", required_argument, NULL, 's'},  {"record", no_argument, NULL, 'r'},
        {"steps", required_argument, NULL, 'n'}, {0},
    };
    struct options o = {
        .bug = BUG_MISSING_QUERY_BIAS, .layers = 4, .first_bad_layer = 1, .steps = 1, .seed = 1};
    for (int option; (option = getopt_long(argc, argv, "h", known, NULL)) != -1;) {
        uint64_t number = 0;
        bool good = false;
        if (option == 'h') {
            print_help();
            exit(0);
        } else if (option == 'b') {
            good = parse_bug(optarg, &o.bug);
        } else if (option == 's') {
            good = parse_number(optarg, UINT64_MAX, &o.seed);
        } else if (option == 'f') {
            good = parse_number(optarg, 1000, &number);
            o.first_bad_layer = (int)number;
        } else if (option == 'r') {
            good = o.record = true;
        } else if (option == 'n') {
            good = parse_number(optarg, 1000000, &number) && number > 0;
            o.steps = (int)number;
        } else if (option == 'l') {
            good = parse_number(optarg, 1000, &number) && number > 0;
            o.layers = (int)number;
        }
        if (!good) {
            if (option != '?')
                fprintf(stderr, "tiny_transformer: '%s' makes no sense here; see --help\n", optarg);
            exit(2);
        }
    }
    if (optind + 1 != argc) {
        fputs("tiny_transformer: one OUT_DIR, please; see --help\n", stderr);
        exit(2);
    }
    o.out = argv[optind];
    return o;
}

int main(int argc, char **argv)
{
    struct options o = parse_options(argc, argv);
    struct model model;
    if (!model_init(&model, o.layers, o.seed)) {
        fputs("tiny_transformer: out of memory\n", stderr);
        return 2;
    }
    struct dump a, b;
    dump_init(&a, o.out, "a", o.record ? DUMP_RUN : DUMP_NPY);
    dump_init(&b, o.out, "b", o.record ? DUMP_RUN : DUMP_SAFETENSORS);
    for (int step = 0; step < o.steps; step++) {
        tdbg_step(a.run, step);
        run_reference(&model, &a);
        tdbg_step(b.run, step);
        run_port(&model, o.bug, o.first_bad_layer, &b);
    }
    dump_close(&a);
    dump_close(&b);
    model_release(&model);
    if (a.failed || b.failed)
        return 2;
    printf("%s  reference: float32, [tokens, heads, dim]\n", a.folder);
    printf("%s  port: bfloat16, [1, heads, tokens, dim]", b.folder);
    if (o.bug != BUG_NONE)
        printf("; bug from layer %d on: %s", o.first_bad_layer, bugs[o.bug].name);
    putchar('\n');
    return 0;
}
