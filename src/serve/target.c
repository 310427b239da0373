/* target.c: the target of a request taken apart: "/api/v1/comparisons/12/find?side=a&low=0.5".
 *
 * We decode it ourselves, once, from the bytes that came: the HTTP library decodes the path before it can be
 * split, and then "%2f" looks like a separator. A target that is not plain is refused as a whole: bad
 * escapes, NUL, bytes that are no UTF-8, "." and ".." as segments, an authority in front.
 */
#include "serve/request.h"

#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_TARGET = 8192 };

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Decodes [from, from + length) to `out`, which gets a NUL; returns where to go on, NULL when it is not
 * plain. */
static char *decode(char *out, const char *from, size_t length, bool plus_is_space)
{
    char *at = out;
    for (size_t i = 0; i < length; i++) {
        char c = from[i];
        if (c == '%') {
            if (length - i < 3)
                return NULL;
            int high = hex_digit(from[i + 1]), low = hex_digit(from[i + 2]);
            if (high < 0 || low < 0)
                return NULL;
            c = (char)(high << 4 | low);
            i += 2;
        } else if (c == '+' && plus_is_space) {
            c = ' ';
        }
        if (c == 0)
            return NULL;
        *at++ = c;
    }
    *at = 0;
    return td_utf8_valid(out, (size_t)(at - out)) ? at + 1 : NULL;
}

static char *parse_path(struct td_request *r, char *out, const char *path, size_t length)
{
    r->exchange.path = out;
    out = decode(out, path, length, false);
    const char *end = path + length;
    /* "/" has one segment, the empty one. */
    for (const char *part = path + 1; out && part <= end;) {
        const char *slash = memchr(part, '/', (size_t)(end - part));
        size_t size = (size_t)((slash ? slash : end) - part);
        char *segment = out;
        out = decode(out, part, size, false);
        if (!out || strcmp(segment, ".") == 0 || strcmp(segment, "..") == 0)
            return NULL;
        if (r->segment_count < TD_MAX_SEGMENTS)
            r->segments[r->segment_count] = segment;
        r->segment_count++; /* one that is deeper than any route is counted, so that none fits it */
        part += size + 1;
    }
    return out;
}

static char *parse_query(struct td_request *r, char *out, const char *query)
{
    while (out && *query) {
        size_t size = strcspn(query, "&"), name = strcspn(query, "=&");
        if (size > 0) {
            if (r->query_count == TD_MAX_QUERY)
                return NULL;
            struct td_pair_of_text *entry = &r->query[r->query_count++];
            entry->name = out;
            out = decode(out, query, name, true);
            entry->value = out;
            size_t skip = name < size ? name + 1 : size;
            if (out)
                out = decode(out, query + skip, size - skip, true);
        }
        query += size + (query[size] == '&');
    }
    return out;
}

struct td_request *td_request_new(const char *target)
{
    size_t length = strlen(target);
    bool too_long = length > MAX_TARGET;
    if (too_long)
        length = 0;
    /* As it came, the path, its segments, the query: each part with its NUL is no longer than it came. */
    struct td_request *r = malloc(sizeof *r + 4 * length + 16);
    if (!r)
        return NULL;
    memset(r, 0, sizeof *r);
    char *out = r->text;
    memcpy(out, target, length);
    out[length] = 0;
    r->target = out;
    out += length + 1;
    r->exchange.path = r->target;
    r->exchange.transport = r;
    td_intake_init(&r->intake);

    size_t path = strcspn(r->target, "?");
    if (too_long)
        r->bad_target = 414;
    else if (r->target[0] != '/' || r->target[1] == '/' || !(out = parse_path(r, out, r->target, path)) ||
             (r->target[path] && !parse_query(r, out, r->target + path + 1)))
        r->bad_target = 400;
    return r;
}

void td_request_free(struct td_request *r)
{
    if (!r)
        return;
    if (r->response)
        td_mhd.destroy_response(r->response);
    if (r->producer.release)
        r->producer.release(r->producer.context);
    for (size_t i = 0; i < r->header_count; i++) {
        free(r->headers[i].name);
        free(r->headers[i].value);
    }
    td_intake_release(&r->intake);
    free(r);
}

const char *td_query(const struct td_exchange *x, const char *name)
{
    const struct td_request *r = x->transport;
    for (size_t i = 0; i < r->query_count; i++)
        if (strcmp(r->query[i].name, name) == 0)
            return r->query[i].value;
    return NULL;
}
