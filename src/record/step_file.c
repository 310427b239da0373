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
    MOST_FILES = 1 << 16, /* of one step */
    METADATA = 32         /* the braces and commas, and the name of the metadata */
};

void td_step_file_init(struct td_step_file *file, const char *dir)
{
    *file = (struct td_step_file){.dir = dir, .fd = -1, .room = LEAST_ROOM};
    td_buffer_init(&file->header, MOST_ROOM);
    td_buffer_init(&file->notes, MOST_ROOM);
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
    td_buffer_release(&file->notes);
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
        td_buffer_clear(&file->notes);
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

/* A document of one field. */
struct line {
    struct td_buffer text;
    struct td_json json;
};

static void line_begin(struct line *line)
{
    td_buffer_init(&line->text, MOST_ROOM);
    td_json_to_buffer(&line->json, &line->text);
    td_json_begin_object(&line->json);
}

static void line_end(struct line *line)
{
    td_json_end_object(&line->json);
    if (!td_json_finish(&line->json))
        line->text.failed = true;
}

/* Without the braces, behind those that are there. */
static void add_line(struct td_buffer *out, const struct line *line, const char *comma)
{
    td_buffer_puts(out, comma);
    td_buffer_append(out, line->text.data + 1, line->text.size - 2);
}

/* One tensor in the header and, where it takes one, its note. */
static tdbg_status describe(struct td_step_file *file, const char *name, enum td_dtype dtype,
                            const struct td_shape *shape, uint64_t bytes, bool *fits,
                            struct tdbg_error *error)
{
    struct line line, note;
    line_begin(&line);
    line_begin(&note);
    td_safetensors_put(&line.json, name, dtype, shape, file->size, file->size + bytes);
    if (dtype == TD_C128)
        td_safetensors_put_note(&note.json, name);
    line_end(&line);
    line_end(&note);
    bool good = !line.text.failed && !note.text.failed;
    *fits = file->header.size + file->notes.size + line.text.size + note.text.size + METADATA <= file->room;
    if (good && *fits) {
        add_line(&file->header, &line, file->header.size > 1 ? "," : "");
        if (dtype == TD_C128)
            add_line(&file->notes, &note, file->notes.size > 0 ? "," : "");
        good = !file->header.failed && !file->notes.failed;
    }
    td_buffer_release(&line.text);
    td_buffer_release(&note.text);
    return good ? TDBG_OK : td_fail_nomem(error);
}

/* The room is used up: the step goes on in another file, with more of it. */
static tdbg_status begin_next(struct td_step_file *file, int64_t number, struct tdbg_error *error)
{
    size_t wanted = 2 * file->room;
    TD_TRY(td_step_file_finish(file, error));
    file->room = wanted < MOST_ROOM ? wanted : MOST_ROOM;
    return begin(file, number, error);
}

tdbg_status td_step_file_add(struct td_step_file *file, int64_t number, const char *name, enum td_dtype dtype,
                             const struct td_shape *shape, const void *data, uint64_t bytes,
                             struct tdbg_error *error)
{
    bool fits;
    if (!td_safetensors_holds(dtype, shape))
        return td_fail(error, TDBG_UNSUPPORTED, "%s: a .safetensors file cannot hold %s of %d axes", name,
                       td_dtype_name(dtype), shape->ndim);
    if (file->fd < 0)
        TD_TRY(begin(file, number, error));
    size_t header = file->header.size, notes = file->notes.size;
    TD_TRY(describe(file, name, dtype, shape, bytes, &fits, error));
    if (!fits) {
        TD_TRY(begin_next(file, number, error));
        header = file->header.size, notes = file->notes.size;
        TD_TRY(describe(file, name, dtype, shape, bytes, &fits, error));
    }
    if (!fits)
        return td_fail(error, TDBG_LIMIT, "the name of a tensor is too long for a file");
    tdbg_status status = write_at(file->fd, data, bytes, LENGTH + file->room + file->size, error);
    if (status == TDBG_OK)
        file->size += bytes;
    else
        file->header.size = header, file->notes.size = notes; /* nothing says what is not there */
    return status;
}

static tdbg_status write_header(struct td_step_file *file, struct tdbg_error *error)
{
    unsigned char length[LENGTH];
    if (file->notes.size > 0) {
        td_buffer_puts(&file->header, ",\"" TD_SAFETENSORS_METADATA "\":{");
        td_buffer_append(&file->header, file->notes.data, file->notes.size);
        td_buffer_puts(&file->header, "}");
    }
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
