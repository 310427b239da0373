/* unpacking.c: see unpacking.h. One lock guards how much has arrived; the thread is woken for large pieces
 * only. A stop is an arrival that ends: the decoder sees a cut stream, and what was written is thrown away.
 */
#include "serve/unpacking.h"

#include "base/job.h"
#include "io/decoder.h"
#include "io/map.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* PIECE: what is unpacked in one go, and what must have arrived for it. */
enum { PIECE = 1 << 18 };

/* Dumps of numbers rarely shrink to less than half. What unpacks to far more is left to the comparison. */
enum { MOST_RATIO = 16 };

/* Of the free disk, one part in so many. */
enum { DISK_SHARE = 16 };

#define UNFINISHED ".unpacking"

struct td_unpacking {
    struct td_arrival arrival; /* first: what the decoder waits for */
    int folder, out;
    uint64_t most;
    struct td_map map; /* of the file, as long as it may become */
    struct td_decoder *decoder;
    uint8_t *piece;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t arrived; /* under the lock */
    bool ended, stop; /* the same */
    uint64_t size;    /* unpacked; the thread's until it is joined */
    bool good;        /* the same: all of it */
};

/* --- the thread ----------------------------------------------------------------------------------------- */

static size_t wait_for_more(struct td_arrival *arrival, size_t known)
{
    struct td_unpacking *u = (struct td_unpacking *)arrival;
    pthread_mutex_lock(&u->lock);
    while (!u->ended && u->arrived < known + PIECE)
        pthread_cond_wait(&u->changed, &u->lock);
    size_t size = u->stop ? known : (size_t)u->arrived;
    pthread_mutex_unlock(&u->lock);
    return size;
}

static bool stopped(struct td_unpacking *u)
{
    pthread_mutex_lock(&u->lock);
    bool stop = u->stop;
    pthread_mutex_unlock(&u->lock);
    return stop;
}

static bool append(struct td_unpacking *u, size_t size)
{
    for (const uint8_t *at = u->piece; size > 0;) {
        ssize_t written = write(u->out, at, size);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return false;
        at += written;
        size -= (size_t)written;
        u->size += (uint64_t)written;
    }
    return true;
}

static void *unpack(void *context)
{
    struct td_unpacking *u = context;
    struct td_decoder *d = u->decoder;
    bool going = true;
    while (going && !d->ended) {
        size_t made;
        going = !stopped(u) && d->read(d, u->piece, PIECE, &made, NULL) == TDBG_OK && append(u, made) &&
                u->size <= u->most && u->size <= PIECE + MOST_RATIO * d->consumed;
    }
    u->good = going && !d->cut && u->size > 0 && !td_map_shrunk(u->map.data);
    if (!u->good)
        (void)!ftruncate(u->out, 0); /* the room is for others, at once */
    return NULL;
}

/* --- its owner ------------------------------------------------------------------------------------------ */

static void discard(struct td_unpacking *u)
{
    td_decoder_close(&u->decoder);
    td_map_close(&u->map);
    if (u->out >= 0)
        close(u->out);
    pthread_cond_destroy(&u->changed);
    pthread_mutex_destroy(&u->lock);
    free(u->piece);
    free(u);
}

static bool is_gzip(int file)
{
    uint8_t start[16];
    ssize_t size = pread(file, start, sizeof start, 0);
    return size > 0 && td_packing_of(start, (size_t)size) == TD_PACKING_GZIP;
}

static uint64_t share_of_disk(int folder)
{
    struct statvfs disk;
    return fstatvfs(folder, &disk) == 0 ? (uint64_t)disk.f_bavail * disk.f_frsize / DISK_SHARE : 0;
}

struct td_unpacking *td_unpacking_start(int folder, int file, uint64_t most_packed, uint64_t most_unpacked)
{
    struct stat info;
    struct td_unpacking *u = is_gzip(file) && fstat(file, &info) == 0 ? calloc(1, sizeof *u) : NULL;
    if (!u)
        return NULL;
    uint64_t most_disk = share_of_disk(folder);
    *u = (struct td_unpacking){.arrival.wait = wait_for_more,
                               .folder = folder,
                               .most = most_unpacked < most_disk ? most_unpacked : most_disk,
                               .arrived = (uint64_t)info.st_size,
                               .piece = malloc(PIECE)};
    pthread_mutex_init(&u->lock, NULL);
    pthread_cond_init(&u->changed, NULL);
    u->out = openat(folder, UNFINISHED, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (u->piece && u->out >= 0 && td_map_fd(&u->map, file, 0, (size_t)most_packed, NULL) == TDBG_OK)
        u->decoder = td_decoder_gzip(u->map.data, (size_t)info.st_size, &u->arrival);
    if (u->decoder && pthread_create(&u->thread, NULL, unpack, u) == 0)
        return u;
    unlinkat(folder, UNFINISHED, 0);
    discard(u);
    return NULL;
}

void td_unpacking_more(struct td_unpacking *u, uint64_t size)
{
    pthread_mutex_lock(&u->lock);
    bool enough = size / PIECE > u->arrived / PIECE;
    u->arrived = size;
    pthread_mutex_unlock(&u->lock);
    if (enough)
        pthread_cond_signal(&u->changed);
}

uint64_t td_unpacking_end(struct td_unpacking **slot, bool whole)
{
    struct td_unpacking *u = *slot;
    pthread_mutex_lock(&u->lock);
    u->ended = true;
    u->stop = !whole;
    pthread_cond_signal(&u->changed);
    pthread_mutex_unlock(&u->lock);
    pthread_join(u->thread, NULL);
    bool kept = whole && u->good && renameat(u->folder, UNFINISHED, u->folder, TD_UNPACKED) == 0;
    if (!kept)
        unlinkat(u->folder, UNFINISHED, 0);
    uint64_t size = kept ? u->size : 0;
    discard(u);
    *slot = NULL;
    return size;
}
