/* socket.h: stream sockets in a folder, whatever the length of its path, and files passed through them.
 *
 * The address of a socket holds 108 bytes; a path may be longer. So the folder is opened, and the address is
 * /proc/self/fd/N/NAME.
 */
#ifndef TD_LIVE_SOCKET_H
#define TD_LIVE_SOCKET_H

#include "base/status.h"

#include <stddef.h>
#include <sys/types.h>

/* Replaces a socket of that name that a dead process left behind. Only the owner may connect. */
TD_CHECK tdbg_status td_socket_listen(int *out, const char *dir, const char *name, struct tdbg_error *error);

/* NOTFOUND when nobody listens. */
TD_CHECK tdbg_status td_socket_connect(int *out, const char *dir, const char *name, struct tdbg_error *error);

/* The process at the other end belongs to this user, or to root. */
bool td_socket_trusted(int fd);

/* As recv and send, without blocking and without signals. `file` -1: none. */
ssize_t td_socket_receive(int fd, void *data, size_t size, int *file);
ssize_t td_socket_send(int fd, const void *data, size_t size, int file);

#endif
