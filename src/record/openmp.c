/* openmp.c: statistics on the threads of an engine's OpenMP (tdbg.h, tdbg_openmp_parallel).
 *
 * What a compiler makes of `#pragma omp parallel` is a call of GOMP_parallel, in GCC's runtime; those of LLVM
 * and Intel have it too, for programs that GCC compiled. So a parallel region can be had by calling it, with
 * no runtime linked.
 *
 * The region has as many threads as the engine's own regions in this thread: GCC's runtime ends threads that
 * a smaller one does not need, and the engine's next would have to start them again. Each thread takes
 * neighbouring parts, in the order of their numbers, as engines do when they share out a tensor: so it mostly
 * reads what it wrote.
 */
#include "tdbg.h"

struct region {
    const struct tdbg_openmp *openmp;
    int parts;
    void (*part)(void *context, int index);
    void *context;
};

static void run_parts(const struct region *region, int thread, int threads)
{
    int64_t parts = region->parts;
    for (int64_t i = parts * thread / threads; i < parts * (thread + 1) / threads; i++)
        region->part(region->context, (int)i);
}

static void body(void *data)
{
    const struct region *region = data;
    run_parts(region, region->openmp->omp_get_thread_num(), region->openmp->omp_get_num_threads());
}

void tdbg_openmp_parallel(void *openmp, int parts, void (*part)(void *context, int index), void *context)
{
    struct region region = {.openmp = openmp, .parts = parts, .part = part, .context = context};
    if (region.openmp->omp_get_max_threads() < 2 || region.openmp->omp_in_parallel())
        run_parts(&region, 0, 1);
    else
        region.openmp->GOMP_parallel(body, &region, 0, 0);
}
