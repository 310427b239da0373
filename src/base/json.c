/* json.c: see json.h. Text gathers in a chunk of its own, because a call into stdio per number is slower than
 * finding the number's digits. */
#include "base/json.h"

#include "base/utf8.h"

#include <assert.h>
#include <math.h>
#include <string.h>

enum { PIECE = 4096 }; /* of a text, copied at once: well below the chunk's size */

static void start(struct td_json *j)
{
    j->used = 0;
    j->depth = 0;
    j->comma = j->failed = j->in_html = false;
}

void td_json_to_file(struct td_json *j, FILE *file)
{
    j->file = file;
    j->buffer = NULL;
    start(j);
}

void td_json_to_html(struct td_json *j, FILE *file)
{
    td_json_to_file(j, file);
    j->in_html = true;
}

void td_json_to_buffer(struct td_json *j, struct td_buffer *buffer)
{
    j->file = NULL;
    j->buffer = buffer;
    start(j);
}

static void hand_over(struct td_json *j)
{
    if (j->file && !j->failed)
        j->failed = fwrite(j->chunk, 1, j->used, j->file) != j->used;
    if (j->buffer) {
        td_buffer_append(j->buffer, j->chunk, j->used);
        j->failed = j->failed || j->buffer->failed;
    }
    j->used = 0;
}

bool td_json_finish(struct td_json *j)
{
    assert(j->depth == 0 || j->failed);
    hand_over(j);
    return !j->failed;
}

/* Room for `count` bytes, count far below the chunk's size. */
static char *room(struct td_json *j, size_t count)
{
    if (count > sizeof j->chunk - j->used)
        hand_over(j);
    return j->chunk + j->used;
}

static void put(struct td_json *j, const char *text, size_t length)
{
    memcpy(room(j, length), text, length);
    j->used += length;
}

static void put_char(struct td_json *j, char c)
{
    *room(j, 1) = c;
    j->used++;
}

static void separate(struct td_json *j)
{
    if (j->comma)
        put_char(j, ',');
    j->comma = true;
}

static void begin(struct td_json *j, char bracket)
{
    separate(j);
    put_char(j, bracket);
    j->comma = false;
    j->depth++;
}

static void end(struct td_json *j, char bracket)
{
    assert(j->depth > 0);
    put_char(j, bracket);
    j->comma = true;
    j->depth--;
}

void td_json_begin_object(struct td_json *j)
{
    begin(j, '{');
}

void td_json_end_object(struct td_json *j)
{
    end(j, '}');
}

void td_json_begin_array(struct td_json *j)
{
    begin(j, '[');
}

void td_json_end_array(struct td_json *j)
{
    end(j, ']');
}

static void put_escape(struct td_json *j, uint32_t code)
{
    static const char short_form[] = {
        ['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r', ['"'] = '"', ['\\'] = '\\'};
    char *at = room(j, 6);
    if (code < sizeof short_form && short_form[code]) {
        at[0] = '\\';
        at[1] = short_form[code];
        j->used += 2;
        return;
    }
    static const char hex[] = "0123456789abcdef";
    memcpy(at, "\\u00", 4);
    at[4] = hex[code >> 4 & 15];
    at[5] = hex[code & 15];
    j->used += 6;
}

/* Stands for itself, and is a whole character. */
static bool is_plain(const struct td_json *j, char c)
{
    return c >= 0x20 && c < 0x7f && c != '"' && c != '\\' && (c != '<' || !j->in_html);
}

/* How much of text[0, length) is plain from its start, up to a piece that there is room for. */
static size_t plain_length(const struct td_json *j, const char *text, size_t length)
{
    size_t most = length < PIECE ? length : PIECE, at = 0;
    while (at < most && is_plain(j, text[at]))
        at++;
    return at;
}

static void put_text(struct td_json *j, const char *text)
{
    put_char(j, '"');
    size_t length = strlen(text);
    for (size_t at = 0; at < length;) {
        size_t plain = plain_length(j, text + at, length - at);
        if (plain > 0) {
            put(j, text + at, plain);
            at += plain;
            continue;
        }
        uint32_t code = 0;
        int step = td_utf8_decode(text + at, length - at, &code);
        if (step == 0)
            put_char(j, '?');
        else if (code < 0x80)
            put_escape(j, code);
        else
            put(j, text + at, (size_t)step);
        at += step ? (size_t)step : 1;
    }
    put_char(j, '"');
}

void td_json_key(struct td_json *j, const char *key)
{
    separate(j);
    put_text(j, key);
    put_char(j, ':');
    j->comma = false;
}

void td_json_string(struct td_json *j, const char *text)
{
    if (!text) {
        td_json_null(j);
        return;
    }
    separate(j);
    put_text(j, text);
}

void td_json_int(struct td_json *j, int64_t value)
{
    separate(j);
    j->used += td_number_int(room(j, TD_NUMBER_SIZE), value);
}

void td_json_uint(struct td_json *j, uint64_t value)
{
    separate(j);
    j->used += td_number_uint(room(j, TD_NUMBER_SIZE), value);
}

void td_json_float(struct td_json *j, double value, const struct td_float_kind *kind)
{
    separate(j);
    bool quoted = !isfinite(value);
    if (quoted)
        put_char(j, '"');
    j->used += td_number_float(room(j, TD_NUMBER_SIZE), value, kind);
    if (quoted)
        put_char(j, '"');
}

void td_json_number(struct td_json *j, double value)
{
    td_json_float(j, value, &td_float64);
}

void td_json_bool(struct td_json *j, bool value)
{
    separate(j);
    put(j, value ? "true" : "false", value ? 4 : 5);
}

void td_json_null(struct td_json *j)
{
    separate(j);
    put(j, "null", 4);
}

void td_json_ints(struct td_json *j, const int64_t *values, size_t count)
{
    td_json_begin_array(j);
    for (size_t i = 0; i < count; i++)
        td_json_int(j, values[i]);
    td_json_end_array(j);
}

void td_json_text(struct td_json *j, const char *json)
{
    separate(j);
    for (size_t left = strlen(json), n; left > 0; left -= n, json += n) {
        n = left < PIECE ? left : PIECE;
        put(j, json, n);
    }
}

void td_json_newline(struct td_json *j)
{
    put_char(j, '\n');
}

void td_json_field_string(struct td_json *j, const char *key, const char *text)
{
    td_json_key(j, key);
    td_json_string(j, text);
}

void td_json_field_int(struct td_json *j, const char *key, int64_t value)
{
    td_json_key(j, key);
    td_json_int(j, value);
}

void td_json_field_uint(struct td_json *j, const char *key, uint64_t value)
{
    td_json_key(j, key);
    td_json_uint(j, value);
}

void td_json_field_number(struct td_json *j, const char *key, double value)
{
    td_json_key(j, key);
    td_json_number(j, value);
}

void td_json_field_bool(struct td_json *j, const char *key, bool value)
{
    td_json_key(j, key);
    td_json_bool(j, value);
}
