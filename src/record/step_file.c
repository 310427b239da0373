/* step_file.c: see step_file.h. */
#include "record/step_file.h"

#include "base/json.h"
#include "format/safetensors.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    LENGTH = 8,           /* of the header, in front of it */
    LEAST_ROOM = 1 << 16, /* some 600 tensors */
    MOST_ROOM = 1 << 24,  /* the format allows 100 MB */
    MOST_FILES = 1 << 16  /* of one step */
};

void td_step_file_init(struct td_step_file *file, const char *dir)
{
    *file = (struct td_step_file){.dir = dir, .fd = -1, .room = LEAST_ROOM};
    td_buffer_init(&file->header, MOST_ROOM);
}

static void path_of(const struct td_step_file *file, char out[4352], const char *tail)
{
    snprintf(out, 4352, "%s/%s%s", file->dir, file->name, tail);
}

static void give_up(struct td_step_file *file)
{
    char part[4352];
    if (file->fd < 0)
        return;
    close(file->fd);
    path_of(file, part, ".part");
    unlink(part);
    file->fd = -1;
}

void td_step_file_release(struct td_step_file *file)
{
    give_up(file);
    td_buffer_release(&file->header);
}

/* The first name of the step that is not taken. */
static tdbg_status begin(struct td_step_file *file, int64_t number, struct tdbg_error *error)
{
    char path[4352], part[4352];
    for (int i = 1; i < MOST_FILES; i++) {
        char again[16] = "";
        if (i > 1)
            snprintf(again, sizeof again, "-%d", i);
        snprintf(file->name, sizeof file->name, "step-%08lld%s.safetensors", (long long)number, again);
        path_of(file, path, "");
        if (access(path, F_OK) == 0)
            continue;
        path_of(file, part, ".part");
        file->fd = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
        if (file->fd < 0)
            return td_fail_errno(error, "cannot make the file of a step");
        file->size = 0;
        td_buffer_clear(&file->header);
        td_buffer_puts(&file->header, "{");
        return TDBG_OK;
    }
    return td_fail(error, TDBG_LIMIT, "step %lld has more than %d files", (long long)number, MOST_FILES);
}

static tdbg_status write_at(int fd, const void *data, uint64_t bytes, uint64_t offset,
                            struct tdbg_error *error)
{
    const char *at = data;
    while (bytes) {
        ssize_t n = pwrite(fd, at, bytes < (1u << 30) ? bytes : 1u << 30, (off_t)offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return td_fail_errno(error, "cannot write the values of a step");
        at += n;
        offset += (uint64_t)n;
        bytes -= (uint64_t)n;
    }
    return TDBG_OK;
}

/* The line of the header for one tensor. */
static void describe(struct td_buffer *out, const char *name, const char *dtype, const struct td_shape *shape,
                     uint64_t begin_at, uint64_t end_at)
{
    struct td_json j;
    td_json_to_buffer(&j, out);
    td_json_begin_object(&j);
    td_json_key(&j, name);
    td_json_begin_object(&j);
    td_json_field_string(&j, "dtype", dtype);
    td_json_key(&j, "shape");
    td_json_ints(&j, shape->size, (size_t)shape->ndim);
    td_json_key(&j, "data_offsets");
    td_json_ints(&j, (int64_t[]){(int64_t)begin_at, (int64_t)end_at}, 2);
    td_json_end_object(&j);
    td_json_end_object(&j);
    if (!td_json_finish(&j))
        out->failed = true;
}

tdbg_status td_step_file_add(struct td_step_file *file, int64_t number, const char *name, enum td_dtype dtype,
                             const struct td_shape *shape, const void *data, uint64_t bytes,
                             struct tdbg_error *error)
{
    const char *type = td_safetensors_dtype(dtype);
    struct td_buffer line;
    if (!type)
        return td_fail(error, TDBG_UNSUPPORTED, "%s: a .safetensors file cannot hold %s", name,
                       td_dtype_name(dtype));
    td_buffer_init(&line, MOST_ROOM);
    if (file->fd < 0)
        TD_TRY(begin(file, number, error));
    describe(&line, name, type, shape, file->size, file->size + bytes);
    tdbg_status status = TDBG_OK;
    if (!line.failed && file->header.size + line.size > file->room) { /* the room is used up: another file */
        size_t wanted = 2 * file->room;
        status = td_step_file_finish(file, error);
        file->room = wanted < MOST_ROOM ? wanted : MOST_ROOM;
        if (status == TDBG_OK)
            status = begin(file, number, error);
        td_buffer_clear(&line);
        describe(&line, name, type, shape, 0, bytes);
    }
    if (status == TDBG_OK)
        status = write_at(file->fd, data, bytes, LENGTH + file->room + file->size, error);
    if (status == TDBG_OK && line.failed)
        status = td_fail_nomem(error);
    if (status == TDBG_OK) { /* without the braces of a document of its own */
        if (file->header.size > 1)
            td_buffer_puts(&file->header, ",");
        td_buffer_append(&file->header, line.data + 1, line.size - 2);
        file->size += bytes;
    }
    td_buffer_release(&line);
    return status;
}

static tdbg_status write_header(struct td_step_file *file, struct tdbg_error *error)
{
    unsigned char length[LENGTH];
    td_buffer_puts(&file->header, "}");
    size_t used = file->header.size;
    (void)td_buffer_extend(&file->header, file->room - used);
    if (file->header.failed)
        return td_fail_nomem(error);
    memset(file->header.data + used, ' ', file->room - used);
    for (int i = 0; i < LENGTH; i++)
        length[i] = (unsigned char)(file->room >> 8 * i);
    TD_TRY(write_at(file->fd, length, LENGTH, 0, error));
    return write_at(file->fd, file->header.data, file->room, LENGTH, error);
}

tdbg_status td_step_file_finish(struct td_step_file *file, struct tdbg_error *error)
{
    char part[4352], path[4352];
    if (file->fd < 0)
        return TDBG_OK;
    path_of(file, part, ".part");
    path_of(file, path, "");
    tdbg_status status = write_header(file, error);
    if (status == TDBG_OK && rename(part, path) != 0)
        status = td_fail_errno(error, "cannot name the file of a step");
    if (status != TDBG_OK) {
        give_up(file);
        return status;
    }
    close(file->fd);
    file->fd = -1;
    return TDBG_OK;
}
