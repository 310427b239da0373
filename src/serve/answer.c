/* answer.c: answers, with the headers each of them must have.
 *
 * An answer is made here and kept with its request; td_answer_deliver hands it to the HTTP library when that
 * may be. The first answer stands: a second one is thrown away, so that a route that fails late cannot
 * contradict itself.
 */
#include "serve/request.h"

#include "io/spill.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CONTENT_SECURITY                                                                    \
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; " \
    "connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

static const char *const always[][2] = {
    {"X-Content-Type-Options", "nosniff"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    {"Content-Security-Policy", CONTENT_SECURITY},
};

static bool has_header(const struct td_request *r, const char *name)
{
    for (size_t i = 0; i < r->header_count; i++)
        if (strcmp(r->headers[i].name, name) == 0)
            return true;
    return false;
}

void td_answer_response(struct td_request *r, unsigned status, const char *type,
                        struct MHD_Response *response)
{
    if (td_answered(r) || !response) {
        r->speechless = !r->response;
        if (response)
            td_mhd.destroy_response(response);
        return;
    }
    bool good = !type || td_mhd.add_response_header(response, "Content-Type", type) == MHD_YES;
    for (size_t i = 0; i < sizeof always / sizeof *always; i++)
        good = good && td_mhd.add_response_header(response, always[i][0], always[i][1]) == MHD_YES;
    for (size_t i = 0; i < r->header_count; i++)
        good =
            good && td_mhd.add_response_header(response, r->headers[i].name, r->headers[i].value) == MHD_YES;
    if (!has_header(r, "Cache-Control"))
        good = good && td_mhd.add_response_header(response, "Cache-Control", "no-store") == MHD_YES;
    if (!good) {
        td_mhd.destroy_response(response);
        r->speechless = true;
        return;
    }
    r->response = response;
    r->status = status;
}

enum MHD_Result td_answer_deliver(struct td_request *r)
{
    if (!r->response)
        return MHD_NO;
    enum MHD_Result result = td_mhd.queue_response(r->connection, r->status, r->response);
    td_mhd.destroy_response(r->response);
    r->response = NULL;
    return result;
}

void td_answer_header(struct td_exchange *x, const char *name, const char *value)
{
    struct td_request *r = x->transport;
    struct td_pair_of_text *slot = &r->headers[r->header_count];
    if (r->header_count == TD_MAX_ANSWER_HEADERS)
        return;
    slot->name = strdup(name);
    slot->value = strdup(value);
    if (slot->name && slot->value) {
        r->header_count++;
        return;
    }
    free(slot->name);
    free(slot->value);
}

/* --- From memory ---------------------------------------------------------------------------------------- */

static void answer_buffer(struct td_exchange *x, unsigned status, const char *type, struct td_buffer *body)
{
    size_t size = body->size;
    if (body->failed) {
        td_buffer_release(body);
        td_answer_error(x, 500, "there is no memory for the answer");
        return;
    }
    char *bytes = td_buffer_take(body);
    struct MHD_Response *response = td_mhd.create_response_from_buffer(
        size, bytes, bytes ? MHD_RESPMEM_MUST_FREE : MHD_RESPMEM_PERSISTENT);
    if (!response)
        free(bytes);
    td_answer_response(x->transport, status, size ? type : NULL, response);
}

void td_answer_json(struct td_exchange *x, unsigned status, struct td_buffer *body)
{
    answer_buffer(x, status, "application/json", body);
}

void td_answer_bytes(struct td_exchange *x, const char *type, struct td_buffer *body)
{
    answer_buffer(x, 200, type, body);
}

static void answer_message(struct td_exchange *x, unsigned status, const char *message)
{
    struct td_buffer body;
    struct td_json json;
    td_buffer_init(&body, 65536);
    td_json_to_buffer(&json, &body);
    td_json_begin_object(&json);
    td_json_field_string(&json, "error", message);
    td_json_end_object(&json);
    (void)td_json_finish(&json); /* the buffer remembers */
    if (body.failed) {
        td_buffer_release(&body);
        td_answer_response(x->transport, status, NULL, NULL);
        return;
    }
    td_answer_json(x, status, &body);
}

void td_answer_error(struct td_exchange *x, unsigned status, const char *format, ...)
{
    char message[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    answer_message(x, status, message);
}

void td_answer_failure(struct td_exchange *x, const struct tdbg_error *error)
{
    static const unsigned codes[] = {
        [TDBG_OK] = 500,          [TDBG_NOMEM] = 503,     [TDBG_IO] = 422,       [TDBG_CORRUPT] = 422,
        [TDBG_UNSUPPORTED] = 422, [TDBG_LIMIT] = 413,     [TDBG_NOTFOUND] = 404, [TDBG_MISMATCH] = 409,
        [TDBG_MISUSE] = 400,      [TDBG_CANCELLED] = 409,
    };
    char text[sizeof error->message + 32];
    size_t status = (size_t)error->status;
    answer_message(x, status < sizeof codes / sizeof *codes ? codes[status] : 500,
                   td_error_text(error, text, sizeof text));
}

bool td_query_int(struct td_exchange *x, const char *name, int64_t low, int64_t high, int64_t otherwise,
                  int64_t *out)
{
    const char *text = td_query(x, name);
    if (!text) {
        *out = otherwise;
        return true;
    }
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    bool number = strchr("-0123456789", text[0]) && end != text && !*end;
    if (!number || errno == ERANGE || value < low || value > high) {
        td_answer_error(x, 400, "%s is '%.64s', not a number from %lld to %lld", name, text, (long long)low,
                        (long long)high);
        return false;
    }
    *out = value;
    return true;
}

/* --- Files ---------------------------------------------------------------------------------------------- */

/* A name for Content-Disposition: what could end the quotes or is not ASCII becomes '_'. */
static void name_download(struct td_exchange *x, const char *file_name)
{
    char value[256];
    int length = snprintf(value, sizeof value, "attachment; filename=\"%.200s", file_name);
    for (char *c = value + sizeof "attachment; filename="; *c; c++)
        if (*c < 0x20 || *c > 0x7e || *c == '"' || *c == '\\')
            *c = '_';
    snprintf(value + length, sizeof value - (size_t)length, "\"");
    td_answer_header(x, "Content-Disposition", value);
}

void td_answer_file(struct td_exchange *x, const char *type, const char *file_name,
                    const struct td_producer *producer)
{
    struct td_request *r = x->transport;
    r->producer = *producer;
    r->file_type = type;
    if (file_name)
        name_download(x, file_name);
}

static tdbg_status produce(const struct td_producer *producer, int fd, off_t *size, struct tdbg_error *error)
{
    FILE *out = fdopen(dup(fd), "w");
    if (!out)
        return td_fail_errno(error, "cannot open the file");
    tdbg_status status = producer->write(producer->context, out);
    if (status != TDBG_OK)
        td_fail(error, status, "the file could not be made");
    else if (fflush(out) != 0 || ferror(out))
        status = td_fail_errno(error, "cannot write the file");
    fclose(out);
    *size = lseek(fd, 0, SEEK_END);
    return status;
}

/* Through a file without a name: the length is known before the first byte goes out, a failure is still an
 * error with a status, and a slow client holds no thread and no input. */
void td_answer_produce(struct td_request *r)
{
    struct td_producer producer = r->producer;
    struct tdbg_error error;
    char folder[256];
    int fd = -1;
    off_t size = 0;
    r->producer = (struct td_producer){0};
    tdbg_status status = td_spill_nameless(&fd, folder, sizeof folder, &error);
    if (status == TDBG_OK)
        status = produce(&producer, fd, &size, &error);
    producer.release(producer.context);
    if (status != TDBG_OK) {
        if (fd >= 0)
            close(fd);
        td_answer_error(&r->exchange, status == TDBG_IO ? 507 : 500, "%s", error.message);
        return;
    }
    struct MHD_Response *response = td_mhd.create_response_from_fd64((uint64_t)size, fd);
    if (!response)
        close(fd);
    td_answer_response(r, 200, r->file_type, response);
}
