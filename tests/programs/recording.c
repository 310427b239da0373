/* recording.c: a program that records what it is told, for tests of the recorder.
 *
 *     recording DIR [CAPTURE] < SCRIPT     REPLACE and NO_CONTROL in the environment set these options;
 *                                          LEND=N lends N threads and prints how often they were wanted
 *
 *     step N | begin NAME | end | cost FLOPS BYTES TOKENS | scalar NAME STEP VALUE | alloc ID BYTES | free ID
 *     tensor NAME DTYPE SHAPE STRIDES FILE    SHAPE and STRIDES as "2,3" or "-"; FILE has the raw bytes.
 *                       A byte after it: where in the file the first element begins
 *     output NAME FLOPS FILE [again]    a vector of float32 that the innermost scope made, and its end; NAME
 *                       may be "-". Always at the same address
 *     snapshot NAME | saved (prints the last step on disk once it is STEP or more: saved STEP) | sleep MS
 *     threads N COUNT   N threads that record COUNT scopes with a tensor each
 *     spin N BYTES      steps 0 to N-1 with tensors w0 to w3 whose values tell the step; prints what is saved
 *     nothing           every call that takes a name, without one
 *     fork              a child that records a large tensor and more than a ring holds, and closes
 *     forks N           N children that record a step each while this one does, one after the other
 */
#include "tdbg.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int fail(const char *what)
{
    fprintf(stderr, "recording: %s\n", what);
    return 2;
}

static int read_sizes(const char *text, int64_t out[TDBG_MAX_DIMS])
{
    int count = 0;
    if (strcmp(text, "-") == 0)
        return 0;
    for (char *end; count < TDBG_MAX_DIMS; text = end + 1) {
        out[count++] = strtoll(text, &end, 10);
        if (*end != ',')
            break;
    }
    return count;
}

static char room[1 << 22];

static size_t read_bytes(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        exit(fail(path));
    size_t size = fread(room, 1, sizeof room, file);
    fclose(file);
    return size;
}

static void record_output(tdbg_run *run, char *words[])
{
    int64_t length = (int64_t)(read_bytes(words[3]) / sizeof(float));
    struct tdbg_output output = {.name = strcmp(words[1], "-") == 0 ? NULL : words[1],
                                 .tensor = {.dtype = "float32", .ndim = 1, .shape = &length},
                                 .flops = atof(words[2])};
    tdbg_output(run, &output, room, words[4] != NULL);
}

static void record_file(tdbg_run *run, char *words[])
{
    int64_t shape[TDBG_MAX_DIMS], strides[TDBG_MAX_DIMS];
    (void)read_bytes(words[5]);
    bool strided = strcmp(words[4], "-") != 0;
    (void)read_sizes(words[4], strides);
    tdbg_tensor(run, words[1],
                &(struct tdbg_tensor){.data = room + (words[6] ? atoi(words[6]) : 0),
                                      .dtype = words[2],
                                      .ndim = read_sizes(words[3], shape),
                                      .shape = shape,
                                      .strides = strided ? strides : NULL});
    memset(room, 0x7f, sizeof room); /* the recorder keeps a copy, or it keeps this */
}

struct lender {
    int threads;
    pid_t pid;
    atomic_int wanted;
};

struct loan {
    void (*part)(void *context, int index);
    void *context;
    int parts;
    atomic_int next;
};

static void *help(void *argument)
{
    struct loan *loan = argument;
    for (int i; (i = atomic_fetch_add(&loan->next, 1)) < loan->parts;)
        loan->part(loan->context, loan->parts - 1 - i); /* no order is promised */
    return NULL;
}

/* Threads as no engine would lend them, begun for the occasion; but it is all that is asked of them. */
static void lend(void *user, int parts, void (*part)(void *context, int index), void *context)
{
    struct lender *lender = user;
    struct loan loan = {.part = part, .context = context, .parts = parts};
    pthread_t threads[16];
    if (getpid() != lender->pid) /* an engine would wait for threads that are not there */
        abort();
    atomic_fetch_add(&lender->wanted, 1);
    for (int i = 0; i < lender->threads; i++)
        if (pthread_create(&threads[i], NULL, help, &loan) != 0)
            exit(fail("no thread"));
    help(&loan);
    for (int i = 0; i < lender->threads; i++)
        pthread_join(threads[i], NULL);
}

struct worker {
    tdbg_run *run;
    int number, count;
};

static void *work(void *argument)
{
    const struct worker *w = argument;
    char name[64];
    for (int i = 0; i < w->count; i++) {
        float values[64];
        for (int k = 0; k < 64; k++)
            values[k] = (float)(w->number * 1000000 + i);
        snprintf(name, sizeof name, "thread.%d", w->number);
        tdbg_scope_begin(w->run, name);
        snprintf(name, sizeof name, "t%d.%d", w->number, i);
        tdbg_tensor(
            w->run, name,
            &(struct tdbg_tensor){.data = values, .dtype = "float32", .ndim = 1, .shape = (int64_t[]){64}});
        tdbg_scope_end(w->run);
    }
    return NULL;
}

static void run_threads(tdbg_run *run, int count, int each)
{
    pthread_t threads[64];
    struct worker workers[64];
    for (int i = 0; i < count; i++) {
        workers[i] = (struct worker){run, i, each};
        if (pthread_create(&threads[i], NULL, work, &workers[i]) != 0)
            exit(fail("no thread"));
    }
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
}

/* Every value of step s, tensor k is s * 8 + k. */
static void spin(tdbg_run *run, int64_t steps, int64_t bytes)
{
    int64_t count = bytes / 4, told = -1;
    float *values = malloc((size_t)bytes);
    for (int64_t s = 0; values && s < steps; s++) {
        tdbg_step(run, s);
        tdbg_scope_begin(run, "model");
        for (int k = 0; k < 4; k++) {
            char name[8];
            snprintf(name, sizeof name, "w%d", k);
            for (int64_t i = 0; i < count; i++)
                values[i] = (float)(s * 8 + k);
            tdbg_tensor(
                run, name,
                &(struct tdbg_tensor){.data = values, .dtype = "float32", .ndim = 1, .shape = &count});
        }
        tdbg_scope_end(run);
        tdbg_scalar(run, "loss", s, 1.0 / (double)(s + 1));
        if (tdbg_run_saved(run) > told) {
            told = tdbg_run_saved(run);
            printf("%" PRId64 "\n", told);
            fflush(stdout);
        }
    }
    free(values);
}

static void try_fork(tdbg_run *run)
{
    pid_t child = fork();
    if (child == 0) {
        static const float large[1 << 20];
        tdbg_tensor(run, "large",
                    &(struct tdbg_tensor){
                        .data = large, .dtype = "float32", .ndim = 1, .shape = (int64_t[]){1 << 20}});
        for (int i = 0; i < 100000; i++) {
            tdbg_scope_begin(run, "child");
            tdbg_scope_end(run);
        }
        _exit(tdbg_run_close(&run) == TDBG_OK ? 0 : 1);
    }
    int status;
    waitpid(child, &status, 0);
    printf("child %d\n", status);
}

static void record_step(tdbg_run *run, int64_t number)
{
    float values[64] = {0};
    tdbg_step(run, number);
    for (int k = 0; k < 4; k++)
        tdbg_tensor(
            run, "x",
            &(struct tdbg_tensor){.data = values, .dtype = "float32", .ndim = 1, .shape = (int64_t[]){64}});
    tdbg_tensor(run, "bad", &(struct tdbg_tensor){.data = values, .dtype = "float31"}); /* a note */
}

/* The writer is at work at each fork, and holds its lock at some of them. A child that waits for it is ended.
 */
static void try_forks(tdbg_run *run, int count)
{
    int stuck = 0;
    for (int i = 0; i < count; i++) {
        record_step(run, i);
        pid_t child = fork();
        if (child == 0) {
            alarm(20);
            record_step(run, i);
            _exit(tdbg_run_close(&run) == TDBG_OK ? 0 : 1);
        }
        int status = 0;
        waitpid(child, &status, 0);
        stuck += status != 0;
    }
    printf("stuck %d\n", stuck);
}

static void tell_nothing(tdbg_run *run)
{
    struct tdbg_tensor one = {.data = &one, .dtype = "uint8"};
    tdbg_tensor(run, NULL, &one);
    tdbg_tensor(run, "x", NULL);
    tdbg_tensor(run, NULL, NULL);
    tdbg_tensor(run, "", &one);
    tdbg_scope_begin(run, NULL);
    tdbg_output(run, NULL, NULL, false);
    tdbg_scalar(run, NULL, 0, 1.0);
    tdbg_snapshot(run, NULL);
    tdbg_run_close(NULL);
}

static void wait_saved(const tdbg_run *run, int64_t step)
{
    for (int i = 0; tdbg_run_saved(run) < step && i < 60000; i++)
        usleep(1000);
    printf("saved %" PRId64 "\n", tdbg_run_saved(run));
    fflush(stdout);
}

static bool obey(tdbg_run *run, int count, char *words[])
{
    static char addresses[4096];
    const char *what = words[0];
    if (strcmp(what, "step") == 0 && count == 2)
        tdbg_step(run, atoll(words[1]));
    else if (strcmp(what, "begin") == 0 && count == 2)
        tdbg_scope_begin(run, words[1]);
    else if (strcmp(what, "end") == 0)
        tdbg_scope_end(run);
    else if (strcmp(what, "cost") == 0 && count == 4)
        tdbg_cost(run, atof(words[1]), atof(words[2]), atof(words[3]));
    else if (strcmp(what, "scalar") == 0 && count == 4)
        tdbg_scalar(run, words[1], atoll(words[2]), strtod(words[3], NULL));
    else if (strcmp(what, "alloc") == 0 && count == 3)
        tdbg_alloc(run, addresses + atoi(words[1]), strtoull(words[2], NULL, 10));
    else if (strcmp(what, "free") == 0 && count == 2)
        tdbg_free(run, addresses + atoi(words[1]), 0);
    else if (strcmp(what, "snapshot") == 0 && count == 2)
        tdbg_snapshot(run, words[1]);
    else if (strcmp(what, "tensor") == 0 && (count == 6 || count == 7))
        record_file(run, words);
    else if (strcmp(what, "output") == 0 && (count == 4 || count == 5))
        record_output(run, words);
    else if (strcmp(what, "saved") == 0 && count == 2)
        wait_saved(run, atoll(words[1]));
    else if (strcmp(what, "sleep") == 0 && count == 2)
        usleep((useconds_t)atoi(words[1]) * 1000);
    else if (strcmp(what, "threads") == 0 && count == 3)
        run_threads(run, atoi(words[1]), atoi(words[2]));
    else if (strcmp(what, "spin") == 0 && count == 3)
        spin(run, atoll(words[1]), atoll(words[2]));
    else if (strcmp(what, "nothing") == 0)
        tell_nothing(run);
    else if (strcmp(what, "fork") == 0)
        try_fork(run);
    else if (strcmp(what, "forks") == 0 && count == 2)
        try_forks(run, atoi(words[1]));
    else
        return false;
    return true;
}

int main(int argc, char **argv)
{
    struct tdbg_error error;
    struct tdbg_run_options options = {.capture = argc > 2 ? argv[2] : NULL,
                                       .replace = getenv("REPLACE") != NULL,
                                       .no_control = getenv("NO_CONTROL") != NULL,
                                       .error = &error};
    struct lender lender = {.pid = getpid()};
    if (getenv("LEND")) {
        lender.threads = atoi(getenv("LEND"));
        options.parallel = lend;
        options.parallel_user = &lender;
    }
    tdbg_run *run = NULL;
    char line[1 << 14];
    if (tdbg_run_open(&run, argc > 1 && *argv[1] ? argv[1] : NULL, &options) != TDBG_OK)
        return fail(error.message);
    while (fgets(line, sizeof line, stdin)) {
        char *words[8] = {NULL}, *rest = line, *word;
        int count = 0;
        while (count < 8 && (word = strsep(&rest, " \n")))
            if (*word)
                words[count++] = word;
        if (count && !obey(run, count, words))
            return fail(words[0]);
    }
    if (options.parallel)
        printf("lent %d\n", atomic_load(&lender.wanted));
    return tdbg_run_end(&run, &error) == TDBG_OK ? 0 : fail(error.message);
}
