/* tdbg.h: the public face of libtdbg, the tensor debugger.
 *
 * Open something that holds tensors (a file, a folder, an archive; the format is found from its content),
 * list what is in it, read values, compute statistics:
 *
 *     struct tdbg_error error;
 *     tdbg_input *input = NULL;
 *     if (tdbg_input_open(&input, "model.safetensors", &error) != TDBG_OK) {
 *         fprintf(stderr, "%s\n", error.message);
 *         return 2;
 *     }
 *     for (size_t i = 0; i < tdbg_input_count(input); i++) {
 *         struct tdbg_info info = tdbg_input_info(input, i);
 *         struct tdbg_stats stats;
 *         if (tdbg_input_stats(input, i, &stats, &error) == TDBG_OK)
 *             printf("%s %s mean %g\n", info.name, info.dtype, stats.mean);
 *     }
 *     tdbg_input_close(&input);
 *
 * Rules of the house: a function that can fail returns tdbg_status and writes its out-parameters on success
 * only; the error argument may be NULL; what a handle lends (names, shapes) lives as long as the handle;
 * nothing here prints, exits or changes the locale. Link with `pkg-config --cflags --libs tdbg`.
 */
#ifndef TDBG_H
#define TDBG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define TDBG_API __attribute__((visibility("default")))
#define TDBG_MUST_CHECK __attribute__((warn_unused_result))
#else
#define TDBG_API
#define TDBG_MUST_CHECK
#endif

/* What went wrong, by what the caller can do about it. */
typedef enum tdbg_status {
    TDBG_OK = 0,
    TDBG_NOMEM,       /* the machine is out of memory */
    TDBG_IO,          /* the system refused: no such file, no permission, disk full */
    TDBG_CORRUPT,     /* the file contradicts its own format */
    TDBG_UNSUPPORTED, /* a valid file that uses something tdbg does not read */
    TDBG_LIMIT,       /* more than tdbg is willing to take on (see src/base/limits.h) */
    TDBG_NOTFOUND,    /* no tensor of that name */
    TDBG_MISMATCH,    /* two things that should fit each other do not */
    TDBG_MISUSE,      /* the caller's mistake: a bad argument, a bad slice */
    TDBG_CANCELLED    /* the caller asked to stop */
} tdbg_status;

#define TDBG_NO_OFFSET UINT64_MAX

/* The story behind a status; owned by the caller, filled on failure. */
struct tdbg_error {
    tdbg_status status;
    uint64_t offset;   /* byte of the file where the trouble shows, or TDBG_NO_OFFSET */
    char message[384]; /* one line, without a trailing newline */
};

TDBG_API const char *tdbg_version(void);

/* --- Reading ------------------------------------------------------------------------------------------- */

typedef struct tdbg_input tdbg_input;

#define TDBG_MAX_DIMS 32

/* One tensor as its file describes it. Borrowed from the input. */
struct tdbg_info {
    const char *name;   /* "layers.0.weight", "3_query.pth", "dumps/a.pth:layers.0.weight" */
    const char *dtype;  /* "bfloat16", "int64", "q4_0" */
    const char *format; /* "torch", "safetensors", "npy", "npz", "gguf", "onnx", "pickle" */
    int ndim;
    const int64_t *shape; /* ndim entries */
    uint64_t bytes;       /* as stored */
    const char *value;    /* the plain dtype its elements read as: its own, or "float32" if quantised */
    size_t value_bytes;   /* of one such element */
};

/* Over the finite values, in double precision; std divides by n - 1. Complex values count by modulus. */
struct tdbg_stats {
    uint64_t count, finite, nan, inf, zeros;
    double mean, std, min, max, absmax, norm; /* NaN where no finite value exists (norm: 0) */
};

/* Opens a file, folder or archive. Unreadable parts do not fail the whole: they are listed as skipped. */
TDBG_API TDBG_MUST_CHECK tdbg_status tdbg_input_open(tdbg_input **out, const char *path,
                                                     struct tdbg_error *error);
TDBG_API void tdbg_input_close(tdbg_input **input);

TDBG_API size_t tdbg_input_count(const tdbg_input *input);
TDBG_API struct tdbg_info tdbg_input_info(const tdbg_input *input, size_t index);
TDBG_API TDBG_MUST_CHECK tdbg_status tdbg_input_find(const tdbg_input *input, const char *name, size_t *index,
                                                     struct tdbg_error *error);

/* What could not be read: its name and why. */
TDBG_API size_t tdbg_input_skipped(const tdbg_input *input);
TDBG_API void tdbg_input_skip(const tdbg_input *input, size_t index, const char **name, const char **reason);

/* Reads `count` elements from element `start`, in row-major order whatever the strides, as doubles (complex:
 * the modulus). Block-quantised values are de-quantised. */
TDBG_API TDBG_MUST_CHECK tdbg_status tdbg_input_read(const tdbg_input *input, size_t index, uint64_t start,
                                                     uint64_t count, double *out, struct tdbg_error *error);

/* The same in the tensor's own type (`value` of its tdbg_info), bit for bit, for count * value_bytes of room.
 */
TDBG_API TDBG_MUST_CHECK tdbg_status tdbg_input_elements(const tdbg_input *input, size_t index,
                                                         uint64_t start, uint64_t count, void *out,
                                                         struct tdbg_error *error);

/* All of them without a copy, where the file holds them that way: row-major, native, uncompressed. Else NULL.
 * Read-only, of any alignment. A file that is cut short meanwhile reads as zeros; tdbg_input_verify tells. */
TDBG_API const void *tdbg_input_borrow(const tdbg_input *input, size_t index);
TDBG_API TDBG_MUST_CHECK tdbg_status tdbg_input_verify(const tdbg_input *input, size_t index,
                                                       struct tdbg_error *error);

TDBG_API TDBG_MUST_CHECK tdbg_status tdbg_input_stats(const tdbg_input *input, size_t index,
                                                      struct tdbg_stats *out, struct tdbg_error *error);

/* --- Comparing ----------------------------------------------------------------------------------------- */

/* What `tdbg diff A B` does, as a call: pairs the tensors of two inputs, lines their layouts up, and finds
 * where they part first and what kind of mistake that looks like.
 *
 *     tdbg_diff *diff = NULL;
 *     if (tdbg_diff_open(&diff, "dumps/reference", "dumps/port", NULL, &error) == TDBG_OK)
 *         puts(tdbg_diff_words(diff));
 *     tdbg_diff_close(&diff);
 *
 * "They differ" is a result and no error. A and B may name one tensor or a slice: "dumps.zip:3_query[0:16]".
 */
typedef struct tdbg_diff tdbg_diff;

/* Zero or NULL: the default. One rule decides: a policy, tolerances, or a reference. */
struct tdbg_diff_options {
    const char *match;         /* auto, stage, weights, value, exact, fuzzy, fused, shape, regex:FROM=>TO,
                                * program:COMMAND, or a chain with commas */
    double threshold;          /* similarity that fuzzy names need, up to 1; 0: 0.6 */
    const char *pairs;         /* a JSON file of pairs by hand */
    const char *policy;        /* noise (follows types and depth), strict (a tolerance for each type) */
    const double *rtol, *atol; /* for every element; one alone: the other is 0 */
    const char *reference;     /* a third, more precise input */
    const char *layout;        /* B's axes by hand: "b h t d -> t h d" */
    int64_t top;               /* worst elements of each diverged pair, up to 1000; 0: five, negative: none */
    const char *names;         /* a file of the names of your engine: lines of PATTERN = STAGE */
    const double *coverage;    /* share of the side with fewer tensors that needs a partner; NULL: 0.5 */
};

TDBG_API TDBG_MUST_CHECK tdbg_status tdbg_diff_open(tdbg_diff **out, const char *a, const char *b,
                                                    const struct tdbg_diff_options *options,
                                                    struct tdbg_error *error);
TDBG_API void tdbg_diff_close(tdbg_diff **diff);

TDBG_API const char *tdbg_diff_json(const tdbg_diff *diff); /* what `tdbg diff --json` prints */
TDBG_API const char *
tdbg_diff_words(const tdbg_diff *diff); /* a line that sums up, a paragraph that explains */

/* --- Recording a running model ------------------------------------------------------------------------- */

/* An engine tells what it does, and a run becomes a folder that tdbg reads like any other input:
 *
 *     tdbg_run *run = NULL;
 *     if (tdbg_run_open(&run, NULL, NULL) != TDBG_OK)     // NULL: the folder named by TDBG_RUN, if any
 *         return 2;
 *     for (int64_t step = 0; step < steps; step++) {
 *         tdbg_step(run, step);
 *         tdbg_scope_begin(run, "layers.0");
 *         …
 *         tdbg_tensor(run, "layers.0.output", &(struct tdbg_tensor){.data = x, .dtype = "float32", .ndim = 2,
 *                                                                   .shape = (int64_t[]){tokens, width}});
 *         tdbg_scope_end(run);
 *         tdbg_scalar(run, "loss", step, loss);
 *     }
 *     tdbg_run_close(&run);
 *
 * Every call takes a NULL run and does nothing with it, so an instrumented program costs next to nothing
 * while nobody records it. Calls may come from any thread; scopes nest within a thread. What is passed in is
 * copied or reduced before the call returns. A run never fails its program: trouble while recording (a full
 * disk) ends the recording and is told by tdbg_run_close.
 */
typedef struct tdbg_run tdbg_run;

struct tdbg_run_options {
    /* What is kept of which tensors: rules "PATTERN[@STEPS]=KIND" separated by ";", the first that fits
     * decides, none: nothing is kept. KIND: full, stats, sketch (statistics and a histogram), slice:EXPR
     * ("slice:0,:16"), none. STEPS: FIRST:LAST:STRIDE, or every:N. NULL: TDBG_CAPTURE, else "*=full". */
    const char *capture;
    const char *program;      /* what runs; NULL: the name of the process */
    int rank, world;          /* of a distributed run; world 0: found from the launcher's environment */
    uint64_t staging_bytes;   /* copies on their way to the disk, at most; 0: 256 MiB */
    bool replace;             /* an earlier run in the folder is removed; else it is an error */
    bool no_control;          /* no control socket: nobody can stop this run */
    struct tdbg_error *error; /* what was wrong when tdbg_run_open fails; may be NULL */

    /* Threads that the engine lends, to take the statistics of a large tensor with: they are awake, and what
     * they just wrote is in their caches. Must call part(context, i) once for every i in [0, parts), on any
     * threads and in any order, and return when all are done; an engine that has no thread to spare runs
     * them itself. Called by the thread that records, by several at once if several do. The answer is the
     * same bits whoever computes it. NULL, or TDBG_THREADS=1: the thread that records does it alone. */
    void (*parallel)(void *user, int parts, void (*part)(void *context, int index), void *context);
    void *parallel_user; /* its first argument */
};

/* `parallel` for an engine whose threads are those of OpenMP; its `user` is a struct tdbg_openmp. A C program
 * has less to write with a loop of its own and `#pragma omp parallel for`; this is for those who know the
 * runtime only by its symbols, as Python does. There may be several runtimes in a process and libtdbg is
 * linked with none: the functions named here must be those of the engine's. */
struct tdbg_openmp {
    void (*GOMP_parallel)(void (*body)(void *data), void *data, unsigned threads, unsigned flags);
    int (*omp_get_max_threads)(void);
    int (*omp_get_num_threads)(void);
    int (*omp_get_thread_num)(void);
    int (*omp_in_parallel)(void);
};
TDBG_API void tdbg_openmp_parallel(void *openmp, int parts, void (*part)(void *context, int index),
                                   void *context);

/* A tensor in memory. Strides count elements, as do all of tdbg; NULL: row-major without gaps. `data` is the
 * first element, also where strides are negative. (C++ must say `struct tdbg_tensor`: there is a function of
 * that name, as there is of tdbg_output.) */
struct tdbg_tensor {
    const void *data;
    const char *dtype; /* a plain one: "float32", "bfloat16", "int64" */
    int ndim;
    const int64_t *shape, *strides;
};

/* `dir` is made if need be; of several ranks each gets a folder rank-N in it. NULL: TDBG_RUN of the
 * environment; without it *run becomes NULL, and that is no error. */
TDBG_API TDBG_MUST_CHECK tdbg_status tdbg_run_open(tdbg_run **run, const char *dir,
                                                   const struct tdbg_run_options *options);

/* Waits until everything is on disk. The first thing that went wrong while recording, if any. */
TDBG_API tdbg_status tdbg_run_close(tdbg_run **run);

/* The same, in words too. `error` may be NULL. */
TDBG_API tdbg_status tdbg_run_end(tdbg_run **run, struct tdbg_error *error);

/* What ended the recording early, the program going on; TDBG_OK while all is well. */
TDBG_API tdbg_status tdbg_run_trouble(const tdbg_run *run, struct tdbg_error *error);

/* Step `n` begins: the one before is over, and is whole on disk soon after. The first is 0 without a call. */
TDBG_API void tdbg_step(tdbg_run *run, int64_t n);

/* The number of the last step that is whole on disk, and stays so whatever happens to this process; -1 before
 * the first. */
TDBG_API int64_t tdbg_run_saved(const tdbg_run *run);

TDBG_API void tdbg_scope_begin(tdbg_run *run, const char *name);
TDBG_API void tdbg_scope_end(tdbg_run *run);

/* Work done in the innermost open scope of this thread; adds up. */
TDBG_API void tdbg_cost(tdbg_run *run, double flops, double bytes, double tokens);

TDBG_API void tdbg_tensor(tdbg_run *run, const char *name, const struct tdbg_tensor *tensor);
TDBG_API void tdbg_scalar(tdbg_run *run, const char *name, int64_t step, double value);

/* What the innermost scope made, what that cost, and its end: tdbg_tensor, tdbg_cost and tdbg_scope_end in
 * one call, for languages in which a call is dear. All but the data is the same from one call to the next of
 * a layer, so it is made once and handed over by its address; `data` stands for tensor.data.
 *
 * `again`: this is the tensor of the last tdbg_output of this thread, and nobody has changed it as far as the
 * caller knows. Where only statistics are kept, those of a large one (a million elements) are not taken again
 * then, if a sample of the values is what it was: 64 cache lines. */
struct tdbg_output {
    const char *name; /* NULL: only the cost and the end */
    struct tdbg_tensor tensor;
    double flops;
};
TDBG_API void tdbg_output(tdbg_run *run, const struct tdbg_output *output, const void *data, bool again);

/* Memory, for the report of `tdbg memory`: what is held, by which scope it was asked for. */
TDBG_API void tdbg_alloc(tdbg_run *run, const void *ptr, uint64_t bytes);
TDBG_API void tdbg_free(tdbg_run *run, const void *ptr, uint64_t bytes);
TDBG_API void tdbg_snapshot(tdbg_run *run, const char *name);

/* Off, a call costs the test of the pointer and no more: the functions are not even called. `run` is looked
 * at twice, so it should be a plain variable. */
#ifndef __cplusplus
#define tdbg_step(run, ...) ((run) ? (tdbg_step)((run), __VA_ARGS__) : (void)0)
#define tdbg_scope_begin(run, ...) ((run) ? (tdbg_scope_begin)((run), __VA_ARGS__) : (void)0)
#define tdbg_scope_end(run) ((run) ? (tdbg_scope_end)(run) : (void)0)
#define tdbg_cost(run, ...) ((run) ? (tdbg_cost)((run), __VA_ARGS__) : (void)0)
#define tdbg_tensor(run, ...) ((run) ? (tdbg_tensor)((run), __VA_ARGS__) : (void)0)
#define tdbg_output(run, ...) ((run) ? (tdbg_output)((run), __VA_ARGS__) : (void)0)
#define tdbg_scalar(run, ...) ((run) ? (tdbg_scalar)((run), __VA_ARGS__) : (void)0)
#define tdbg_alloc(run, ...) ((run) ? (tdbg_alloc)((run), __VA_ARGS__) : (void)0)
#define tdbg_free(run, ...) ((run) ? (tdbg_free)((run), __VA_ARGS__) : (void)0)
#define tdbg_snapshot(run, ...) ((run) ? (tdbg_snapshot)((run), __VA_ARGS__) : (void)0)
#endif

#ifdef __cplusplus
}
#endif
#endif
