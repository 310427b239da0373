/* unpacking.c: see unpacking.h. A stop is an arrival that ends: the decoder sees a cut stream, and what was
 * written is thrown away.
 */
#include "serve/unpacking.h"

#include "base/job.h"
#include "io/map.h"
#include "io/unpack.h"
#include "io/write_all.h"
#include "serve/arrival.h"
#include "serve/room.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* Dumps of numbers rarely shrink to less than half. What unpacks to far more is left to the comparison. */
enum { MOST_RATIO = 16 };

/* Of the free disk, one part in so many. */
enum { DISK_SHARE = 16 };

#define UNFINISHED ".unpacking"

struct td_unpacking {
    struct td_arrival arrival; /* first: what the decoder waits for */
    struct td_sink sink;
    int folder, out;
    uint64_t most;
    struct td_map map; /* of the file, as long as it may become */
    struct td_decoder *decoder;
    pthread_t thread;
    struct td_file_arrival file;
    uint64_t taken, size; /* packed and unpacked; the thread's until it is joined */
    struct td_room room;  /* of what is unpacked; the same */
    bool good;            /* the same: all of it */
};

/* --- the thread ----------------------------------------------------------------------------------------- */

static size_t wait_for_more(struct td_arrival *arrival, size_t known)
{
    struct td_unpacking *u = (struct td_unpacking *)arrival;
    return (size_t)td_file_arrival_wait(&u->file, known);
}

static bool is_complete(struct td_arrival *arrival, size_t *size)
{
    struct td_unpacking *u = (struct td_unpacking *)arrival;
    uint64_t there;
    bool complete = td_file_arrival_complete(&u->file, &there);
    *size = (size_t)there;
    return complete;
}

static struct td_unpacking *of_sink(struct td_sink *sink)
{
    return (struct td_unpacking *)(void *)((char *)sink - offsetof(struct td_unpacking, sink));
}

static tdbg_status append(struct td_unpacking *u, const uint8_t *data, size_t size, uint64_t consumed,
                          struct tdbg_error *error)
{
    u->taken += consumed;
    u->size += size;
    if (td_file_arrival_stopped(&u->file))
        return td_fail(error, TDBG_CANCELLED, "stopped");
    if (u->size > u->most || u->size > TD_ARRIVAL_PIECE + MOST_RATIO * u->taken)
        return td_fail(error, TDBG_LIMIT, "unpacks to too much");
    td_room_take(&u->room, u->out, u->size);
    errno = td_write_all(u->out, data, size);
    return errno ? td_fail_errno(error, "cannot write what was unpacked") : TDBG_OK;
}

static tdbg_status take(struct td_sink *sink, const uint8_t *data, size_t size, uint64_t consumed,
                        struct tdbg_error *error)
{
    struct td_unpacking *u = of_sink(sink);
    tdbg_status status = append(u, data, size, consumed, error);
    if (status != TDBG_OK)
        td_file_arrival_end(&u->file, true); /* the decoder must not wait for what nobody wants */
    return status;
}

static void *unpack(void *context)
{
    struct td_unpacking *u = context;
    bool unpacked = td_unpack_into(&u->sink, u->decoder, NULL) == TDBG_OK;
    u->good = unpacked && !u->decoder->cut && u->size > 0 && !td_map_shrunk(u->map.data);
    td_room_end(&u->room, u->out, u->size);
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
    td_file_arrival_release(&u->file);
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
    *u = (struct td_unpacking){.arrival = {wait_for_more, is_complete},
                               .sink.take = take,
                               .folder = folder,
                               .most = most_unpacked < most_disk ? most_unpacked : most_disk};
    td_file_arrival_init(&u->file, (uint64_t)info.st_size);
    u->out = openat(folder, UNFINISHED, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (u->out >= 0 && td_map_fd(&u->map, file, 0, (size_t)most_packed, NULL) == TDBG_OK)
        u->decoder = td_decoder_gzip(u->map.data, (size_t)info.st_size, &u->arrival);
    if (u->decoder && pthread_create(&u->thread, NULL, unpack, u) == 0)
        return u;
    unlinkat(folder, UNFINISHED, 0);
    discard(u);
    return NULL;
}

void td_unpacking_more(struct td_unpacking *u, uint64_t size)
{
    td_file_arrival_more(&u->file, size);
}

void td_unpacking_all(struct td_unpacking *u)
{
    td_file_arrival_end(&u->file, false);
}

uint64_t td_unpacking_end(struct td_unpacking **slot, bool whole)
{
    struct td_unpacking *u = *slot;
    td_file_arrival_end(&u->file, !whole);
    pthread_join(u->thread, NULL);
    bool kept = whole && u->good && renameat(u->folder, UNFINISHED, u->folder, TD_UNPACKED) == 0;
    if (!kept)
        unlinkat(u->folder, UNFINISHED, 0);
    uint64_t size = kept ? u->size : 0;
    discard(u);
    *slot = NULL;
    return size;
}
