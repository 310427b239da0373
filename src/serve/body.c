/* body.c: see intake.h. */
#include "serve/intake.h"

#include "base/utf8.h"
#include "format/json.h"
#include "serve/form.h"
#include "serve/request.h"
#include "serve/uploads.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MAX_JSON = 16 << 20, MAX_JSON_VALUES = 1 << 20, MAX_JSON_ALL = 256 << 20 };

/* Of a form: the text of all fields. */
enum { MAX_TEXT = 1 << 20 };

/* What is read of a refused body before the connection is cut. */
static const uint64_t most_wasted = UINT64_C(64) << 20;

void td_intake_init(struct td_intake *intake)
{
    td_buffer_init(&intake->text, MAX_JSON);
    td_arena_init(&intake->arena, 4 * MAX_TEXT);
}

static void abandon_files(struct td_intake *in)
{
    for (size_t i = 0; i < in->field_count; i++)
        td_upload_abandon(&in->files[i]);
}

void td_intake_release(struct td_intake *intake)
{
    abandon_files(intake);
    td_form_close(&intake->form);
    td_arena_release(&intake->arena);
    json_decref(intake->json);
    td_buffer_release(&intake->text);
}

static bool has_type(const struct td_request *r, const char *wanted)
{
    const char *type = td_mhd.lookup_connection_value(r->connection, MHD_HEADER_KIND, "Content-Type");
    size_t length = strlen(wanted);
    return type && strncasecmp(type, wanted, length) == 0 && (!type[length] || strchr("; \t", type[length]));
}

/* What the headers announce; UINT64_MAX: they do not say. */
static uint64_t announced(const struct td_request *r)
{
    const char *text = td_mhd.lookup_connection_value(r->connection, MHD_HEADER_KIND, "Content-Length");
    if (td_mhd.lookup_connection_value(r->connection, MHD_HEADER_KIND, "Transfer-Encoding"))
        return UINT64_MAX;
    return text ? strtoull(text, NULL, 10) : 0;
}

static void check_json(struct td_request *r, uint64_t size)
{
    if (!has_type(r, "application/json"))
        td_answer_error(&r->exchange, 415, "the body must be JSON, with Content-Type: application/json");
    else if (size != UINT64_MAX && size > MAX_JSON)
        td_answer_error(&r->exchange, 413, "the body is larger than %d bytes", MAX_JSON);
}

static void take_json(struct td_request *r, const char *bytes, size_t size)
{
    struct td_server *server = r->exchange.server;
    if (atomic_fetch_add(&server->held, size) + size > MAX_JSON_ALL) {
        atomic_fetch_sub(&server->held, size);
        td_answer_error(&r->exchange, 503, "too many large requests at once");
        return;
    }
    r->intake.held += size;
    td_buffer_append(&r->intake.text, bytes, size);
    if (r->intake.text.failed)
        td_answer_error(&r->exchange, 413, "the body is larger than %d bytes", MAX_JSON);
}

static void end_json(struct td_request *r)
{
    struct td_intake *in = &r->intake;
    const char *text = td_buffer_text(&in->text);
    struct tdbg_error error;
    json_error_t trouble;
    if (td_json_measure("the body", text, in->text.size, 0, MAX_JSON_VALUES, &error) != TDBG_OK) {
        td_answer_error(&r->exchange, 400, "%s", error.message);
        return;
    }
    in->json = json_loadb(text, in->text.size, JSON_REJECT_DUPLICATES, &trouble);
    if (!in->json)
        td_answer_error(&r->exchange, 400, "the body is not valid JSON: %s", trouble.text);
    r->exchange.body = in->json;
}

/* --- Files and forms ------------------------------------------------------------------------------------ */

static void answer_upload_failure(struct td_request *r, const struct tdbg_error *error)
{
    if (error->status == TDBG_IO)
        td_answer_error(&r->exchange, 507, "%s", error->message);
    else
        td_answer_failure(&r->exchange, error);
}

/* A new field at the end of the list; file_name NULL: text. False: it was answered. */
static bool add_field(struct td_request *r, const char *name, const char *file_name)
{
    struct td_intake *in = &r->intake;
    struct tdbg_error error;
    if (in->field_count == TD_MAX_FIELDS) {
        td_answer_error(&r->exchange, 400, "a form of more than %d fields", TD_MAX_FIELDS);
        return false;
    }
    char *name_copy = td_arena_strdup(&in->arena, name);
    char *file_copy = file_name ? td_arena_strdup(&in->arena, file_name) : NULL;
    if (!name_copy || (file_name && !file_copy)) {
        td_answer_error(&r->exchange, 413, "the names of the fields are too long");
        return false;
    }
    td_utf8_clean(name_copy);
    if (file_copy)
        td_utf8_clean(file_copy);
    struct td_upload **file = &in->files[in->field_count];
    *file = NULL;
    bool hashed = r->route->body == TD_BODY_FILE; /* whose answer tells the hash */
    if (file_name &&
        td_upload_begin(file, r->exchange.server->options.uploads, file_name, hashed, &error) != TDBG_OK) {
        answer_upload_failure(r, &error);
        return false;
    }
    in->fields[in->field_count++] = (struct td_field){.name = name_copy, .file_name = file_copy, .value = ""};
    return true;
}

static void take_file(struct td_request *r, const char *bytes, size_t size)
{
    struct td_upload *file = r->intake.files[r->intake.field_count - 1];
    struct tdbg_error error;
    if (td_upload_write(file, bytes, size, &error) == TDBG_OK)
        return;
    answer_upload_failure(r, &error);
    abandon_files(&r->intake); /* the room is needed more than the rest of this request */
}

/* The text of the last field is complete. */
static void close_text(struct td_request *r)
{
    struct td_intake *in = &r->intake;
    if (in->field_count == 0 || in->fields[in->field_count - 1].file_name)
        return;
    char *text = td_arena_strndup(&in->arena, td_buffer_text(&in->text), in->text.size);
    if (text)
        in->fields[in->field_count - 1].value = text;
    else
        td_answer_error(&r->exchange, 413, "the fields hold more than %d bytes of text", MAX_TEXT);
    td_buffer_clear(&in->text);
}

/* The last field is complete, if there is one. Of all files of a form, one at a time holds memory. */
static void close_field(struct td_request *r)
{
    struct td_intake *in = &r->intake;
    struct td_upload *file = in->field_count > 0 ? in->files[in->field_count - 1] : NULL;
    struct tdbg_error error;
    if (!file)
        close_text(r);
    else if (td_upload_flush(file, &error) != TDBG_OK)
        answer_upload_failure(r, &error);
}

/* A field of the form begins, with which the last one ends. */
static bool on_field(void *context, const char *name, const char *file_name)
{
    struct td_request *r = context;
    close_field(r);
    return !td_answered(r) && add_field(r, name, file_name);
}

static bool on_bytes(void *context, const char *bytes, size_t size)
{
    struct td_request *r = context;
    struct td_intake *in = &r->intake;
    if (in->fields[in->field_count - 1].file_name) {
        take_file(r, bytes, size);
    } else {
        td_buffer_append(&in->text, bytes, size);
        if (in->text.size > MAX_TEXT || in->text.failed)
            td_answer_error(&r->exchange, 413, "the fields hold more than %d bytes of text", MAX_TEXT);
    }
    return !td_answered(r);
}

static struct td_form *open_form(struct td_request *r)
{
    const char *type = td_mhd.lookup_connection_value(r->connection, MHD_HEADER_KIND, "Content-Type");
    return td_form_open(type, &(struct td_form_sink){.begin = on_field, .add = on_bytes, .context = r});
}

static void begin_files(struct td_request *r, uint64_t size)
{
    struct td_intake *in = &r->intake;
    const struct td_server_options *options = &r->exchange.server->options;
    const char *name = td_query(&r->exchange, "name");
    bool form = r->route->body == TD_BODY_FORM;
    in->fields = td_arena_array(&in->arena, TD_MAX_FIELDS, sizeof *in->fields);
    in->files = td_arena_array(&in->arena, TD_MAX_FIELDS, sizeof(struct td_upload *));
    if (!in->fields || !in->files)
        td_answer_error(&r->exchange, 503, "out of memory");
    else if (form && !has_type(r, "multipart/form-data"))
        td_answer_error(&r->exchange, 415, "the body must be a form, with Content-Type: multipart/form-data");
    else if (form && !(in->form = open_form(r)))
        td_answer_error(&r->exchange, 400, "the form has no boundary");
    else if (!form && (!name || !*name))
        td_answer_error(&r->exchange, 400, "an upload needs a name (?name=FILE)");
    else if (!form && size != UINT64_MAX && size > options->upload_limit)
        td_answer_error(&r->exchange, 413, "the file is larger than %llu bytes (--limit-upload)",
                        (unsigned long long)options->upload_limit);
    else if (!form)
        (void)add_field(r, "file", name); /* answers itself */
}

static void end_form(struct td_request *r)
{
    struct td_intake *in = &r->intake;
    bool whole = td_form_ended(in->form);
    td_form_close(&in->form);
    if (!td_answered(r))
        close_field(r);
    if (!td_answered(r) && !whole)
        td_answer_error(&r->exchange, 400, "the form is cut short or broken");
}

bool td_intake_has_files(const struct td_request *r)
{
    for (size_t i = 0; i < r->intake.field_count; i++)
        if (r->intake.files[i])
            return true;
    return false;
}

/* The uploads of a request are finished together: when one fails, those before it go too. */
void td_intake_finish_files(struct td_request *r)
{
    struct td_intake *in = &r->intake;
    struct td_uploads *uploads = r->exchange.server->options.uploads;
    struct tdbg_error error = {0};
    struct td_uploaded done;
    for (size_t i = 0; i < in->field_count && !td_answered(r); i++) {
        if (!in->files[i])
            continue;
        if (td_upload_finish(&in->files[i], &done, &error) != TDBG_OK) {
            answer_upload_failure(r, &error);
            break;
        }
        char *id = td_arena_strdup(&in->arena, done.id);
        in->fields[i].value = id ? id : "";
        td_uploaded_release(&done);
    }
    for (size_t i = 0; i < in->field_count && td_answered(r); i++)
        if (in->fields[i].file_name && *in->fields[i].value &&
            td_uploads_remove(uploads, in->fields[i].value, &error) != TDBG_OK)
            break; /* the store is in trouble too */
}

/* --- Any body ------------------------------------------------------------------------------------------- */

bool td_intake_begin(struct td_request *r)
{
    uint64_t size = announced(r);
    if (!td_answered(r) && r->route->body == TD_BODY_JSON)
        check_json(r, size);
    else if (!td_answered(r) && r->route->body != TD_BODY_NONE)
        begin_files(r, size);
    if (!td_answered(r))
        return true;
    bool asks_first = td_mhd.lookup_connection_value(r->connection, MHD_HEADER_KIND, "Expect") != NULL;
    return !asks_first && (size == UINT64_MAX || size <= most_wasted);
}

bool td_intake_take(struct td_request *r, const char *bytes, size_t size)
{
    struct td_intake *in = &r->intake;
    in->received += size;
    if (td_answered(r))
        return in->received <= most_wasted + r->exchange.server->options.upload_limit;
    switch (r->route->body) {
    case TD_BODY_NONE:
        return in->received <= most_wasted;
    case TD_BODY_JSON:
        take_json(r, bytes, size);
        break;
    case TD_BODY_FILE:
        take_file(r, bytes, size);
        break;
    case TD_BODY_FORM:
        if (!td_form_take(in->form, bytes, size) && !td_answered(r))
            td_answer_error(&r->exchange, 400, "the form is broken");
        break;
    }
    if (td_answered(r))
        abandon_files(in);
    return true;
}

void td_intake_end(struct td_request *r)
{
    struct td_intake *in = &r->intake;
    if (!td_answered(r) && r->route->body == TD_BODY_JSON)
        end_json(r);
    if (in->form)
        end_form(r);
    if (td_answered(r))
        abandon_files(in);
    r->exchange.fields = in->fields;
    r->exchange.field_count = in->field_count;
    /* The text has served; its part of the budget is free for others. */
    td_buffer_release(&in->text);
    atomic_fetch_sub(&r->exchange.server->held, in->held);
    in->held = 0;
}
