/* read_sum.c: the yardstick: two threads that map a file, read all of it as float32 and add it up.
 *
 *     read_sum FILE      prints the sum; the caller takes the time
 *
 * Nothing simpler reads every byte of the file, so its bandwidth is what the machine gives. Each thread takes
 * the next MiB that is left, into 32 sums that the compiler turns into vectors.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { STEP = 1 << 20, SUMS = 32 };

static const char *data;
static size_t size;
static atomic_size_t next_step;

static void *add_up(void *total)
{
    float sums[SUMS] = {0};
    for (;;) {
        size_t at = atomic_fetch_add(&next_step, 1) * STEP;
        if (at >= size)
            break;
        const float *values = (const float *)(const void *)(data + at);
        size_t count = (size - at < STEP ? size - at : STEP) / sizeof *values;
        for (size_t i = 0; i + SUMS <= count; i += SUMS)
            for (size_t k = 0; k < SUMS; k++)
                sums[k] += values[i + k];
    }
    for (size_t k = 0; k < SUMS; k++)
        *(double *)total += (double)sums[k];
    return NULL;
}

int main(int argc, char **argv)
{
    int fd = argc == 2 ? open(argv[1], O_RDONLY) : -1;
    struct stat info;
    if (fd < 0 || fstat(fd, &info) != 0)
        return 2;
    size = (size_t)info.st_size;
    data = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED)
        return 2;
    double totals[2] = {0};
    pthread_t other;
    if (pthread_create(&other, NULL, add_up, &totals[1]) != 0)
        return 2;
    add_up(&totals[0]);
    pthread_join(other, NULL);
    printf("%g\n", totals[0] + totals[1]);
    return 0;
}
