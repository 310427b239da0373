/* trace_scan.c: a JSON scanner for one shape of document, made to run over gigabytes.
 *
 * Functions that read return false in two cases: the text is wrong (`wrong` says how), or it ran out. In the
 * second case the window is moved and the event read again from its beginning; with windows of a MiB that
 * happens once in some thousand events. Times are read as decimal digits into whole nanoseconds: as doubles,
 * microseconds since 1970 would lose the nanoseconds.
 */
#include "analyse/trace_scan.h"

#include "base/limits.h"
#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

struct reader {
    const char *at, *end;
    const char *wrong; /* NULL: ran out of text */
};

/* A time beyond this is no time: 73 years. Differences cannot overflow. */
#define TIME_MOST (INT64_C(1) << 61)

static bool fail(struct reader *r, const char *wrong)
{
    r->wrong = wrong;
    return false;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

/* The next byte that is no space, without taking it. */
static bool peek(struct reader *r, char *out)
{
    while (r->at < r->end && is_space(*r->at))
        r->at++;
    if (r->at == r->end)
        return false;
    *out = *r->at;
    return true;
}

static bool expect(struct reader *r, char wanted, const char *wrong)
{
    char c;
    if (!peek(r, &c))
        return false;
    if (c != wanted)
        return fail(r, wrong);
    r->at++;
    return true;
}

static bool read_string(struct reader *r, struct td_slice *out)
{
    const char *p = r->at + 1, *end = r->end;
    for (;;) {
        while (p < end && *p != '"' && *p != '\\')
            p++;
        if (p >= end)
            return false;
        if (*p == '"')
            break;
        p += 2;
    }
    *out = (struct td_slice){r->at + 1, (size_t)(p - r->at - 1)};
    r->at = p + 1;
    return true;
}

/* Numbers and the words true, false, null: up to what ends them. */
static bool read_plain(struct reader *r, struct td_slice *out)
{
    const char *p = r->at;
    while (p < r->end && (unsigned char)*p > ' ' && *p != ',' && *p != '}' && *p != ']')
        p++;
    if (p == r->end)
        return false;
    if (p == r->at)
        return fail(r, "a value is missing");
    *out = (struct td_slice){r->at, (size_t)(p - r->at)};
    r->at = p;
    return true;
}

enum { PLAIN, OPEN, CLOSE, QUOTE };

static const uint8_t kind_of[256] = {['{'] = OPEN, ['['] = OPEN, ['}'] = CLOSE, [']'] = CLOSE, ['"'] = QUOTE};

/* A container; `curly` remembers which brackets are open. */
static bool read_container(struct reader *r, struct td_slice *out)
{
    const char *begin = r->at;
    struct td_slice ignored;
    uint64_t curly = 0;
    int depth = 0;
    do {
        while (r->at < r->end && kind_of[(uint8_t)*r->at] == PLAIN)
            r->at++;
        if (r->at == r->end)
            return false;
        switch (kind_of[(uint8_t)*r->at]) {
        case QUOTE:
            if (!read_string(r, &ignored))
                return false;
            continue;
        case OPEN:
            if (depth++ == TD_MAX_DEPTH)
                return fail(r, "brackets nested too deeply");
            curly = curly << 1 | (*r->at == '{');
            break;
        default:
            if ((curly & 1) != (*r->at == '}'))
                return fail(r, "a bracket that was not opened");
            curly >>= 1;
            depth--;
        }
        r->at++;
    } while (depth > 0);
    *out = (struct td_slice){begin, (size_t)(r->at - begin)};
    return true;
}

static bool read_value(struct reader *r, struct td_slice *out)
{
    char c;
    if (!peek(r, &c))
        return false;
    if (c == '"')
        return read_string(r, out);
    return c == '{' || c == '[' ? read_container(r, out) : read_plain(r, out);
}

/* --- Times ---------------------------------------------------------------------------------------------- */

static bool slow_time(struct td_slice text, int64_t *out)
{
    double value;
    if (!td_slice_number(text, &value) || !(value > -2e15 && value < 2e15))
        return false;
    *out = (int64_t)(value * 1000);
    return true;
}

/* Microseconds as text to nanoseconds. */
static bool time_of(struct td_slice text, int64_t *out)
{
    const char *p = text.data, *end = p + text.size;
    bool negative = p < end && *p == '-';
    p += negative;
    if (p == end)
        return false;
    uint64_t value = 0;            /* of 19 digits at the most */
    int digits = 0, fraction = -1; /* digits behind the point, -1 before it */
    for (; p < end; p++) {
        if (*p == '.' && fraction < 0) {
            fraction = 0;
            continue;
        }
        if (*p < '0' || *p > '9')
            return slow_time(text, out);
        if (fraction == 3)
            continue;
        if (digits > 15 && fraction < 0)
            return slow_time(text, out);
        value = value * 10 + (uint64_t)(*p - '0');
        digits += value > 0;
        fraction += fraction >= 0;
    }
    for (int i = fraction < 0 ? 0 : fraction; i < 3; i++)
        value *= 10;
    if (value > TIME_MOST)
        return false;
    *out = negative ? -(int64_t)value : (int64_t)value;
    return true;
}

/* --- Events --------------------------------------------------------------------------------------------- */

/* An event of which a time is not known is left out; one that says nonsense is no trace's. */
static bool set_time(struct reader *r, struct td_slice text, int64_t *out, bool *unknown)
{
    if (td_slice_is(text, "null") || td_slice_is(text, "NaN")) {
        *unknown = true;
        return true;
    }
    return time_of(text, out) || fail(r, "a time that is no number of microseconds");
}

static bool set_field(struct reader *r, struct td_trace_event *e, struct td_slice key, struct td_slice value)
{
    const char *k = key.data;
    switch (key.size) {
    case 2:
        if (k[0] == 'p' && k[1] == 'h')
            e->phase = value.size == 1 ? value.data[0] : '?';
        else if (k[0] == 't' && k[1] == 's')
            return (e->timed = true) && set_time(r, value, &e->time_ns, &e->unknown);
        break;
    case 3:
        if (memcmp(k, "dur", 3) == 0)
            return set_time(r, value, &e->duration_ns, &e->unknown);
        if (memcmp(k, "cat", 3) == 0)
            e->category = value;
        else if (memcmp(k, "pid", 3) == 0)
            e->pid = value;
        else if (memcmp(k, "tid", 3) == 0)
            e->tid = value;
        break;
    case 4:
        if (memcmp(k, "name", 4) == 0)
            e->name = value;
        else if (memcmp(k, "args", 4) == 0)
            e->args = value;
        break;
    default:
        break;
    }
    return true;
}

static bool read_key(struct reader *r, struct td_slice *key)
{
    char c;
    if (!peek(r, &c))
        return false;
    if (c != '"')
        return fail(r, "a key is missing");
    return read_string(r, key) && expect(r, ':', "a colon is missing");
}

static bool read_event(struct reader *r, struct td_trace_event *event)
{
    *event = (struct td_trace_event){0};
    char c;
    r->at++; /* { */
    if (!peek(r, &c))
        return false;
    if (c == '}') {
        r->at++;
        return true;
    }
    for (;;) {
        struct td_slice key, value;
        if (!read_key(r, &key) || !read_value(r, &value) || !set_field(r, event, key, value) || !peek(r, &c))
            return false;
        r->at++;
        if (c == '}') {
            event->timed = event->timed && !event->unknown;
            return true;
        }
        if (c != ',') {
            r->at--;
            return fail(r, "a comma is missing");
        }
    }
}

static struct reader reader_of(const struct td_trace_scan *s)
{
    return (struct reader){.at = s->text->data + s->at, .end = s->text->data + s->text->size};
}

static tdbg_status corrupt(const struct td_trace_scan *s, const struct reader *r, struct tdbg_error *error)
{
    return td_fail_at(error, TDBG_CORRUPT, s->text->offset + (uint64_t)(r->at - s->text->data), "%s",
                      r->wrong);
}

tdbg_status td_trace_scan_next(struct td_trace_scan *s, struct td_trace_event *event, bool *more,
                               struct tdbg_error *error)
{
    *more = false;
    while (!s->ended) {
        struct reader r = reader_of(s);
        char c = 0;
        while (peek(&r, &c) && c == ',')
            r.at++;
        size_t begin = (size_t)(r.at - s->text->data);
        bool there = r.at < r.end;
        if (there && c == ']') {
            s->ended = true;
            break;
        }
        if (there && c != '{') {
            r.wrong = "an event that is no object";
        } else if (there && read_event(&r, event)) {
            s->at = (size_t)(r.at - s->text->data);
            *more = true;
            return TDBG_OK;
        }
        if (r.wrong)
            return corrupt(s, &r, error);
        if (s->text->last) {
            s->ended = true;
            s->cut = there || s->text->cut;
            s->cut_at = s->text->offset + begin;
            break;
        }
        TD_TRY(td_trace_text_more(s->text, begin, error));
        s->at = 0;
    }
    return TDBG_OK;
}

/* --- The document around them --------------------------------------------------------------------------- */

static bool find_events(struct reader *r, bool *found)
{
    char c;
    for (bool first = true;; first = false) {
        struct td_slice key, value;
        if (!peek(r, &c))
            return false;
        if (c == '}')
            return true;
        if (!first && !expect(r, ',', "a comma is missing"))
            return false;
        if (!read_key(r, &key) || !peek(r, &c))
            return false;
        if (td_slice_is(key, "traceEvents")) {
            *found = expect(r, '[', "traceEvents is no array");
            return *found;
        }
        if (!read_value(r, &value))
            return false;
    }
}

tdbg_status td_trace_scan_begin(struct td_trace_scan *s, struct td_trace_text *text, struct tdbg_error *error)
{
    *s = (struct td_trace_scan){.text = text};
    if (text->size >= 3 && memcmp(text->data, "\xef\xbb\xbf", 3) == 0) /* a mark that the text is UTF-8 */
        s->at = 3;
    for (;;) {
        struct reader r = reader_of(s);
        bool found = false;
        char c;
        if (peek(&r, &c)) {
            r.at++;
            if (c == '[')
                found = true;
            else if (c != '{')
                return td_fail(error, TDBG_UNSUPPORTED, "neither a recorded run nor a trace in JSON");
            else if (find_events(&r, &found) && !found)
                return td_fail(error, TDBG_UNSUPPORTED, "JSON without traceEvents: not a trace");
        }
        if (r.wrong)
            return corrupt(s, &r, error);
        if (found) {
            s->at = (size_t)(r.at - text->data);
            return TDBG_OK;
        }
        if (text->last)
            return td_fail(error, TDBG_CORRUPT, "%s",
                           text->size ? "the trace ends before its first event" : "the file is empty");
        TD_TRY(td_trace_text_more(text, 0, error));
    }
}

/* --- Slices --------------------------------------------------------------------------------------------- */

bool td_slice_is(struct td_slice slice, const char *text)
{
    return slice.data && slice.size == strlen(text) && memcmp(slice.data, text, slice.size) == 0;
}

bool td_slice_begins(struct td_slice slice, const char *text)
{
    size_t length = strlen(text);
    return slice.data && slice.size >= length && memcmp(slice.data, text, length) == 0;
}

bool td_slice_number(struct td_slice slice, double *out)
{
    char copy[64], *end;
    if (!slice.data || slice.size == 0 || slice.size >= sizeof copy)
        return false;
    memcpy(copy, slice.data, slice.size);
    copy[slice.size] = 0;
    double value = strtod(copy, &end);
    if (*end || !(value > -1e300 && value < 1e300))
        return false;
    *out = value;
    return true;
}

struct td_slice td_trace_field(struct td_slice object, const char *key)
{
    if (!object.data || !object.size || object.data[0] != '{')
        return (struct td_slice){0};
    struct reader r = {.at = object.data + 1, .end = object.data + object.size};
    char c;
    for (;;) {
        struct td_slice name, value;
        if (!read_key(&r, &name) || !read_value(&r, &value))
            return (struct td_slice){0};
        if (td_slice_is(name, key))
            return value;
        if (!peek(&r, &c) || c != ',')
            return (struct td_slice){0};
        r.at++;
    }
}

static int hex_of(const char *p, const char *end, uint32_t *out)
{
    *out = 0;
    int i = 0;
    for (; i < 4 && p + i < end; i++) {
        char c = p[i];
        int digit = c >= '0' && c <= '9'                 ? c - '0'
                    : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10
                                                         : -1;
        if (digit < 0)
            break;
        *out = *out << 4 | (uint32_t)digit;
    }
    return i;
}

static size_t put_utf8(char *out, uint32_t code)
{
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    int extra = code < 0x800 ? 1 : 2; /* beyond the base plane names are '?' */
    out[0] = (char)((extra == 1 ? 0xc0 : 0xe0) | code >> (6 * extra));
    for (int i = 1; i <= extra; i++)
        out[i] = (char)(0x80 | (code >> (6 * (extra - i)) & 0x3f));
    return (size_t)extra + 1;
}

size_t td_trace_unescape(struct td_slice text, char *out, size_t room)
{
    size_t made = 0;
    const char *p = text.data, *end = p + text.size;
    while (p < end && made + 4 < room) {
        if (*p != '\\' || p + 1 == end) {
            out[made++] = *p++;
            continue;
        }
        p++;
        uint32_t code;
        if (*p == 'u') {
            int digits = hex_of(p + 1, end, &code);
            p += 1 + digits;
            made += put_utf8(out + made,
                             digits < 4 || code < ' ' || (code >= 0xd800 && code < 0xe000) ? '?' : code);
        } else {
            out[made++] = *p == 'n' || *p == 't' || *p == 'r' || *p == 'b' || *p == 'f' ? ' ' : *p;
            p++;
        }
    }
    out[made] = 0;
    td_utf8_clean(out);
    return strlen(out);
}
