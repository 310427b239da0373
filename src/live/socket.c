/* socket.c: see socket.h. */
#include "live/socket.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { BACKLOG = 16, CONNECT_SECONDS = 10 };

static tdbg_status open_folder(int *folder, struct sockaddr_un *address, const char *dir, const char *name,
                               struct tdbg_error *error)
{
    *folder = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (*folder < 0)
        return td_fail_errno(error, "cannot open the folder");
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    snprintf(address->sun_path, sizeof address->sun_path, "/proc/self/fd/%d/%s", *folder, name);
    return TDBG_OK;
}

static tdbg_status listen_at(int fd, int folder, const struct sockaddr_un *address, const char *name,
                             struct tdbg_error *error)
{
    if (unlinkat(folder, name, 0) != 0 && errno != ENOENT)
        return td_fail_errno(error, "cannot replace the control socket");
    if (bind(fd, (const struct sockaddr *)address, sizeof *address) != 0)
        return td_fail_errno(error, "cannot make the control socket");
    /* Nobody can connect before listen, so nobody can slip in before the mode is right. */
    if (fchmodat(folder, name, 0600, 0) != 0 || listen(fd, BACKLOG) != 0) {
        tdbg_status status = td_fail_errno(error, "cannot listen at the control socket");
        unlinkat(folder, name, 0);
        return status;
    }
    return TDBG_OK;
}

tdbg_status td_socket_listen(int *out, const char *dir, const char *name, struct tdbg_error *error)
{
    struct sockaddr_un address;
    int folder;
    TD_TRY(open_folder(&folder, &address, dir, name, error));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    tdbg_status status =
        fd < 0 ? td_fail_errno(error, "cannot make a socket") : listen_at(fd, folder, &address, name, error);
    close(folder);
    if (status == TDBG_OK)
        *out = fd;
    else if (fd >= 0)
        close(fd);
    return status;
}

tdbg_status td_socket_connect(int *out, const char *dir, const char *name, struct tdbg_error *error)
{
    struct sockaddr_un address;
    int folder;
    TD_TRY(open_folder(&folder, &address, dir, name, error));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const struct timeval patience = {.tv_sec = CONNECT_SECONDS}; /* where many wait, and nobody is let in */
    tdbg_status status = TDBG_OK;
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) != 0)
        status = td_fail_errno(error, "cannot make a socket");
    else if (connect(fd, (const struct sockaddr *)&address, sizeof address) != 0)
        status = errno == ENOENT || errno == ECONNREFUSED
                     ? td_fail(error, TDBG_NOTFOUND, "no process records this run")
                     : td_fail_errno(error, "cannot connect to the run");
    else if (!td_socket_trusted(fd))
        status = td_fail(error, TDBG_IO, "the process of the run belongs to somebody else");
    close(folder);
    if (status == TDBG_OK)
        *out = fd;
    else if (fd >= 0)
        close(fd);
    return status;
}

bool td_socket_trusted(int fd)
{
    struct ucred peer;
    socklen_t size = sizeof peer;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
           (peer.uid == geteuid() || peer.uid == 0 || geteuid() == 0);
}

/* Room for one file in a message. */
union rights {
    struct cmsghdr header;
    char room[CMSG_SPACE(sizeof(int))];
};

ssize_t td_socket_receive(int fd, void *data, size_t size, int *file)
{
    union rights rights;
    struct iovec piece = {.iov_base = data, .iov_len = size};
    struct msghdr message = {
        .msg_iov = &piece, .msg_iovlen = 1, .msg_control = &rights, .msg_controllen = sizeof rights};
    *file = -1;
    ssize_t count = recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    struct cmsghdr *header = count >= 0 ? CMSG_FIRSTHDR(&message) : NULL;
    if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
        header->cmsg_len == CMSG_LEN(sizeof *file))
        memcpy(file, CMSG_DATA(header), sizeof *file);
    return count;
}

ssize_t td_socket_send(int fd, const void *data, size_t size, int file)
{
    union rights rights = {0};
    struct iovec piece = {.iov_base = (void *)(uintptr_t)data, .iov_len = size};
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};
    if (file >= 0) {
        message.msg_control = &rights;
        message.msg_controllen = sizeof rights;
        rights.header = (struct cmsghdr){
            .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof file)};
        memcpy(CMSG_DATA(&rights.header), &file, sizeof file);
    }
    return sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}
