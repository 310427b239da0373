/* spill.c: see spill.h. */
#include "io/spill.h"

#include "base/checked.h"
#include "base/limits.h"
#include "io/map.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { ALIGNMENT = 64, FIRST_SEGMENT = 1 << 20, LAST_SEGMENT = 64 << 20 };

struct td_spill_segment {
    struct td_spill_segment *next;
    struct td_map map;
    size_t used;
};

void td_budget_init(struct td_budget *budget)
{
    const char *text = getenv("TDBG_MAX_UNPACK");
    uint64_t limit = text ? strtoull(text, NULL, 10) : 0;
    atomic_init(&budget->used, 0);
    budget->limit = limit ? limit : TD_MAX_UNPACK;
}

static tdbg_status charge(struct td_budget *budget, uint64_t bytes, struct tdbg_error *error)
{
    uint64_t used = atomic_load(&budget->used);
    do {
        if (bytes > budget->limit - used)
            return td_fail(error, TDBG_LIMIT,
                           "unpacks to more than %" PRIu64 " bytes (TDBG_MAX_UNPACK sets the limit)",
                           budget->limit);
    } while (!atomic_compare_exchange_weak(&budget->used, &used, used + bytes));
    return TDBG_OK;
}

static void refund(struct td_budget *budget, uint64_t bytes)
{
    atomic_fetch_sub(&budget->used, bytes);
}

static int open_nameless(const char *folder)
{
    int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL))
        return fd;
    char path[512];
    if ((size_t)snprintf(path, sizeof path, "%s/tdbg-XXXXXX", folder) >= sizeof path)
        return -1;
    fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0)
        unlink(path);
    return fd;
}

tdbg_status td_spill_nameless(int *out, char *folder, size_t room, struct tdbg_error *error)
{
    const char *candidates[] = {getenv("TMPDIR"), "/var/tmp", "/tmp"};
    char failure[300] = "";
    for (size_t i = 0; i < sizeof candidates / sizeof *candidates; i++) {
        if (!candidates[i] || !candidates[i][0])
            continue;
        int fd = open_nameless(candidates[i]);
        if (fd >= 0) {
            snprintf(folder, room, "%s", candidates[i]);
            *out = fd;
            return TDBG_OK;
        }
        snprintf(failure, sizeof failure, "cannot make a file for unpacking in %s", candidates[i]);
    }
    return td_fail_errno(error, failure);
}

static tdbg_status fail_write(const char *folder, struct tdbg_error *error)
{
    if (errno == ENOSPC || errno == EDQUOT || errno == EFBIG)
        return td_fail(error, TDBG_IO, "no space for unpacking in %s: set TMPDIR to a larger place", folder);
    return td_fail_errno(error, "cannot write what was unpacked");
}

void td_spill_init(struct td_spill *spill, struct td_budget *budget)
{
    *spill = (struct td_spill){.budget = budget};
}

void td_spill_release(struct td_spill *spill)
{
    for (struct td_spill_segment *s = spill->segments, *next; s; s = next) {
        next = s->next;
        td_map_close(&s->map);
        free(s);
    }
    refund(spill->budget, spill->total);
    *spill = (struct td_spill){.budget = spill->budget};
}

/* Reserves the disk blocks: a full disk must show here and not as a fault when the memory is written. The
 * kernel reserves until nothing is left and gives it back only then, so it is asked first whether there is
 * enough: others live on this disk. */
static int reserve(int fd, size_t size)
{
    struct statvfs disk;
    if (fstatvfs(fd, &disk) == 0 && size / disk.f_frsize >= disk.f_bavail) {
        errno = ENOSPC;
        return -1;
    }
    if (fallocate(fd, 0, 0, (off_t)size) == 0)
        return 0;
    return errno == EOPNOTSUPP || errno == ENOSYS ? ftruncate(fd, (off_t)size) : -1;
}

/* A new segment of `size` zeroed bytes. */
static tdbg_status make_segment(struct td_spill_segment **out, size_t size, struct tdbg_error *error)
{
    char folder[256];
    int fd;
    TD_TRY(td_spill_nameless(&fd, folder, sizeof folder, error));
    tdbg_status status = TDBG_OK;
    struct td_spill_segment *segment = NULL;
    if (reserve(fd, size) != 0) {
        status = fail_write(folder, error);
        goto done;
    }
    segment = calloc(1, sizeof *segment);
    if (!segment) {
        status = td_fail_nomem(error);
        goto done;
    }
    status = td_map_fd_writable(&segment->map, fd, size, error);
    if (status == TDBG_OK)
        *out = segment;
    else
        free(segment);
done:
    close(fd);
    return status;
}

tdbg_status td_spill_alloc(struct td_spill *spill, size_t size, void **out, struct tdbg_error *error)
{
    size_t need;
    if (!td_add_size(size ? size : 1, ALIGNMENT - 1, &need))
        return td_fail(error, TDBG_LIMIT, "unpacks to %zu bytes", size);
    need = need / ALIGNMENT * ALIGNMENT;
    TD_TRY(charge(spill->budget, need, error));
    struct td_spill_segment *segment = spill->segments;
    if (!segment || need > segment->map.size - segment->used) {
        size_t wanted = spill->total < FIRST_SEGMENT  ? FIRST_SEGMENT
                        : spill->total > LAST_SEGMENT ? LAST_SEGMENT
                                                      : spill->total;
        tdbg_status status = make_segment(&segment, need > wanted ? need : wanted, error);
        if (status != TDBG_OK) {
            refund(spill->budget, need);
            return status;
        }
        segment->next = spill->segments;
        spill->segments = segment;
    }
    *out = (void *)(uintptr_t)(segment->map.data + segment->used);
    segment->used += need;
    spill->total += need;
    return TDBG_OK;
}

tdbg_status td_spill_stream_open(struct td_spill_stream *stream, struct td_spill *spill,
                                 struct tdbg_error *error)
{
    *stream = (struct td_spill_stream){.spill = spill, .fd = -1};
    return td_spill_nameless(&stream->fd, stream->folder, sizeof stream->folder, error);
}

static bool all_zero(const uint8_t *data, size_t size)
{
    return size == 0 || (data[0] == 0 && memcmp(data, data + 1, size - 1) == 0);
}

tdbg_status td_spill_stream_put(struct td_spill_stream *stream, uint64_t at, const void *data, size_t size,
                                struct tdbg_error *error)
{
    if (all_zero(data, size))
        return TDBG_OK;
    for (const uint8_t *p = data; size > 0;) {
        ssize_t written = pwrite(stream->fd, p, size, (off_t)at);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return fail_write(stream->folder, error);
        p += written;
        at += (uint64_t)written;
        size -= (size_t)written;
    }
    return TDBG_OK;
}

tdbg_status td_spill_stream_write(struct td_spill_stream *stream, const void *data, size_t size,
                                  struct tdbg_error *error)
{
    TD_TRY(charge(stream->spill->budget, size, error));
    stream->size += size;
    return td_spill_stream_put(stream, stream->size - size, data, size, error);
}

tdbg_status td_spill_stream_pad(struct td_spill_stream *stream, uint64_t size, struct tdbg_error *error)
{
    if (size <= stream->size)
        return TDBG_OK;
    TD_TRY(charge(stream->spill->budget, size - stream->size, error));
    stream->size = size;
    return TDBG_OK;
}

/* Keeps a mapping for the life of the spill; the bytes are charged already. False: no memory. */
static bool keep(struct td_spill *spill, const struct td_map *map)
{
    struct td_spill_segment *segment = calloc(1, sizeof *segment);
    if (!segment)
        return false;
    segment->map = *map;
    segment->used = map->size; /* full: nothing is carved from it */
    segment->next = spill->segments;
    spill->segments = segment;
    spill->total += map->size;
    return true;
}

tdbg_status td_spill_adopt(struct td_spill *spill, const char *path, const uint8_t **data, size_t *size,
                           struct tdbg_error *error)
{
    struct td_map map;
    TD_TRY(td_map_open(&map, path, error));
    tdbg_status status = charge(spill->budget, map.size, error);
    if (status == TDBG_OK && !keep(spill, &map)) {
        refund(spill->budget, map.size);
        status = td_fail_nomem(error);
    }
    if (status != TDBG_OK) {
        td_map_close(&map);
        return status;
    }
    *data = map.data;
    *size = map.size;
    return TDBG_OK;
}

tdbg_status td_spill_stream_map(struct td_spill_stream *stream, const uint8_t **data, size_t *size,
                                struct tdbg_error *error)
{
    struct td_map map;
    if (ftruncate(stream->fd, (off_t)stream->size) != 0)
        return fail_write(stream->folder, error);
    TD_TRY(td_map_fd(&map, stream->fd, 0, (size_t)stream->size, error));
    if (!keep(stream->spill, &map)) {
        td_map_close(&map);
        return td_fail_nomem(error);
    }
    *data = map.data;
    *size = map.size;
    close(stream->fd);
    stream->fd = -1;
    return TDBG_OK;
}

void td_spill_stream_close(struct td_spill_stream *stream)
{
    if (stream->fd < 0)
        return;
    close(stream->fd);
    refund(stream->spill->budget, stream->size);
    stream->fd = -1;
}
