/* record_cost.c: what recording costs the program that records; the yardsticks of bench_record.py.
 *
 *     record_cost off N          N calls of tdbg_tensor without a run: nanoseconds a call
 *     record_cost stats DIR N    1 MiB of float32, statistics only: medians of a memcpy and of the
 *                                call in us, and of call / memcpy where one follows the other
 *     record_cost scopes DIR N   N pairs of scope begin and end: seconds
 *
 * The memcpy goes into memory that has been written before, and always the same: that is how a program that
 * kept its tensors would keep them. It finds the tensor in the cache where the call before it left it, and so
 * does the call.
 */
#include "tdbg.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SIDE = 512, BYTES = SIDE * SIDE * 4 };

static double read_clock(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double now(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

static int compare(const void *x, const void *y)
{
    const double *a = x, *b = y;
    return (*a > *b) - (*a < *b);
}

static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, compare);
    return values[count / 2];
}

static tdbg_run *open_run(const char *dir)
{
    struct tdbg_error error;
    struct tdbg_run_options options = {.capture = "*=stats", .replace = true, .error = &error};
    tdbg_run *run = NULL;
    if (tdbg_run_open(&run, dir, &options) != TDBG_OK) {
        fprintf(stderr, "record_cost: %s\n", error.message);
        exit(2);
    }
    return run;
}

static void measure_off(int count)
{
    struct tdbg_tensor tensor = {.dtype = "float32"};
    tdbg_run *volatile off = NULL;                      /* the compiler must not know */
    double begin = read_clock(CLOCK_THREAD_CPUTIME_ID); /* it waits for nobody */
    for (int i = 0; i < count; i++)
        tdbg_tensor(off, "x", &tensor);
    printf("%.3f\n", (read_clock(CLOCK_THREAD_CPUTIME_ID) - begin) / count * 1e9);
}

static void measure_stats(const char *dir, int count)
{
    tdbg_run *run = open_run(dir);
    float *from = malloc(BYTES), *to = malloc(BYTES);
    double *copies = calloc((size_t)count, sizeof *copies), *calls = calloc((size_t)count, sizeof *calls);
    double *ratios = calloc((size_t)count, sizeof *ratios);
    if (!from || !to || !copies || !calls || !ratios)
        exit(2);
    for (int i = 0; i < SIDE * SIDE; i++)
        from[i] = (float)drand48() - 0.5f;
    memset(to, 1, BYTES);
    struct tdbg_tensor tensor = {
        .data = from, .dtype = "float32", .ndim = 2, .shape = (int64_t[]){SIDE, SIDE}};
    for (int i = 0; i < count; i++) {
        double begin = now();
        memcpy(to, from, BYTES);
        copies[i] = now() - begin;
        begin = now();
        tdbg_tensor(run, "x", &tensor);
        calls[i] = now() - begin;
        ratios[i] = calls[i] / copies[i];
    }
    printf("%.2f %.2f %.4f\n", 1e6 * median(copies, count), 1e6 * median(calls, count),
           median(ratios, count));
    free(from);
    free(to);
    free(copies);
    free(calls);
    free(ratios);
    tdbg_run_close(&run);
}

static void measure_scopes(const char *dir, int count)
{
    tdbg_run *run = open_run(dir);
    double begin = now();
    for (int i = 0; i < count; i++) {
        tdbg_scope_begin(run, "layer");
        tdbg_scope_end(run);
    }
    printf("%.4f\n", now() - begin);
    tdbg_run_close(&run);
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "off") == 0)
        measure_off(atoi(argv[2]));
    else if (argc == 4 && strcmp(argv[1], "stats") == 0)
        measure_stats(argv[2], atoi(argv[3]));
    else if (argc == 4 && strcmp(argv[1], "scopes") == 0)
        measure_scopes(argv[2], atoi(argv[3]));
    else
        return 2;
    return 0;
}
