/* map.h: files as memory, safe against files that shrink while we look.
 *
 * A mapped page whose file was cut short raises SIGBUS. The guard turns that into an answer: pages that
 * vanished read as zeros, the mapping remembers it, and whoever computed something asks
 * td_map_shrunk before the answer is believed. Handlers other than ours are called for addresses not ours.
 */
#ifndef TD_IO_MAP_H
#define TD_IO_MAP_H

#include "base/status.h"

struct td_map {
    const uint8_t *data; /* NULL when the file is empty */
    size_t size;
    struct td_map_slot *slot; /* in the guard's table; NULL: read into memory */
};

/* Maps a regular file read-only, or reads it where it is small and very many are mapped already. Never blocks
 * on a FIFO or a device: they are refused. */
TD_CHECK tdbg_status td_map_open(struct td_map *out, const char *path, struct tdbg_error *error);

/* Maps `size` bytes from `offset` (a multiple of the page size) of an open file, read-only. The descriptor
 * may be closed afterwards. */
TD_CHECK tdbg_status td_map_fd(struct td_map *out, int fd, uint64_t offset, size_t size,
                               struct tdbg_error *error);

/* The first `size` bytes of an open file, writable and shared with it. */
TD_CHECK tdbg_status td_map_fd_writable(struct td_map *out, int fd, size_t size, struct tdbg_error *error);
void td_map_close(struct td_map *map);

/* Some page of the mapping that holds `data` vanished under us since it was made. */
bool td_map_shrunk(const void *data);

#endif
