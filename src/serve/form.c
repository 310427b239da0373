/* form.c: see form.h. */
#include "serve/form.h"

#include "base/buffer.h"
#include "base/clones.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* The longest edge (RFC 2046), and all headers of a field. */
enum { MOST_EDGE = 70, MOST_HEADERS = 16 << 10 };

static const char before_edge[] = "\r\n--";

enum state {
    BETWEEN, /* behind an edge: a line ends, or the form does */
    HEADERS,
    CONTENT, /* of a field, or what comes before the first */
    ENDED,
    BROKEN,
};

struct td_form {
    struct td_form_sink sink;
    enum state state;
    bool in_field;                                   /* else what comes is skipped */
    char border[sizeof before_edge - 1 + MOST_EDGE]; /* between a field and the next: CRLF, "--", the edge */
    size_t border_size;
    size_t matched;           /* bytes at the end of what was taken that may begin a border */
    char line_end;            /* what was seen behind an edge: '-' or CR; 0: nothing yet */
    struct td_buffer headers; /* of the field that begins */
};

/* --- Headers -------------------------------------------------------------------------------------------- */

/* Past spaces. */
static const char *skip_spaces(const char *p)
{
    return p + strspn(p, " \t");
}

/* Takes the value of a parameter, quoted or not, to `out` (as long as `p` at most); what follows it. A quote
 * within quotes is \" or, from browsers, %22; any other backslash is one, as in names of Windows. */
static const char *take_value(char *out, const char *p)
{
    if (*p != '"') {
        size_t length = strcspn(p, "; \t");
        memcpy(out, p, length);
        out[length] = '\0';
        return p + length;
    }
    for (p++; *p && *p != '"'; out++) {
        size_t length = strncmp(p, "\\\"", 2) == 0 ? 2 : strncmp(p, "%22", 3) == 0 ? 3 : 1;
        *out = length > 1 ? '"' : *p;
        p += length;
    }
    *out = '\0';
    return *p ? p + 1 : p;
}

/* The parameter of a header such as `form-data; name="x"`, into `out`, which is as long as the header. */
static bool find_parameter(char *out, const char *header, const char *wanted)
{
    const char *p = header + strcspn(header, ";");
    while (*p == ';') {
        const char *name = skip_spaces(p + 1);
        size_t length = strcspn(name, "=;");
        if (name[length] != '=')
            return false;
        p = take_value(out, name + length + 1);
        if (length == strlen(wanted) && strncasecmp(name, wanted, length) == 0)
            return true;
        p += strcspn(p, ";");
    }
    return false;
}

/* The value of one of the headers, or NULL; each line is made a string of its own, once. */
static const char *find_header(char *lines, const char *wanted)
{
    size_t length = strlen(wanted);
    for (char *line = lines, *end; (end = strstr(line, "\r\n")); line = end + 2) {
        *end = '\0';
        if (strncasecmp(line, wanted, length) == 0 && line[length] == ':')
            return skip_spaces(line + length + 1);
    }
    return NULL;
}

/* The headers are complete, with the empty line behind them. */
static bool begin_field(struct td_form *form)
{
    const char *disposition = find_header(form->headers.data, "Content-Disposition");
    char *name = disposition ? malloc(2 * (strlen(disposition) + 1)) : NULL;
    if (!name)
        return false;
    char *file_name = name + strlen(disposition) + 1;
    bool good = strncasecmp(disposition, "form-data", 9) == 0 && find_parameter(name, disposition, "name");
    bool file = good && find_parameter(file_name, disposition, "filename");
    form->in_field = good && form->sink.begin(form->sink.context, name, file ? file_name : NULL);
    free(name);
    return form->in_field;
}

/* --- The body ------------------------------------------------------------------------------------------- */

/* All of these take something from `p` on, and return how far they came. */

static const char *take_between(struct td_form *form, const char *p, const char *end)
{
    for (; p < end; p++) {
        if (form->line_end == 0 && (*p == ' ' || *p == '\t'))
            continue; /* padding */
        if (form->line_end == 0 && (*p == '-' || *p == '\r')) {
            form->line_end = *p;
            continue;
        }
        form->state = form->line_end == '-' && *p == '-'     ? ENDED
                      : form->line_end == '\r' && *p == '\n' ? HEADERS
                                                             : BROKEN;
        td_buffer_clear(&form->headers);
        return p + 1;
    }
    return p;
}

/* By an empty line. */
static bool ends_headers(const char *headers, size_t size)
{
    return (size == 2 && memcmp(headers, "\r\n", 2) == 0) ||
           (size >= 4 && memcmp(headers + size - 4, "\r\n\r\n", 4) == 0);
}

static const char *take_headers(struct td_form *form, const char *p, const char *end)
{
    while (p < end) {
        const char *line_end = memchr(p, '\n', (size_t)(end - p));
        const char *next = line_end ? line_end + 1 : end;
        bool is_text = !memchr(p, '\0', (size_t)(next - p));
        td_buffer_append(&form->headers, p, (size_t)(next - p));
        p = next;
        if (form->headers.failed || !is_text)
            form->state = BROKEN;
        else if (ends_headers(form->headers.data, form->headers.size))
            form->state = begin_field(form) ? CONTENT : BROKEN;
        if (form->state != HEADERS)
            break;
    }
    return p;
}

static void add(struct td_form *form, const char *bytes, size_t size)
{
    if (form->in_field && size > 0 && form->state != BROKEN &&
        !form->sink.add(form->sink.context, bytes, size))
        form->state = BROKEN;
}

/* Whether a line ends somewhere among STRETCH bytes, or right behind them; one more byte is read. Compilers
 * make this a few vector instructions: memchr stops at every 256th byte of most uploads. */
enum { STRETCH = 2048 };

TD_CLONES("avx2") static bool has_line_end(const char *p)
{
    unsigned char found = 0;
    for (int i = 0; i < STRETCH; i++)
        found |= (p[i] == '\r') & (p[i + 1] == '\n');
    return found;
}

/* Where a border begins, all of it or the part that `end` leaves; `end`: nowhere. */
static const char *find_border(const struct td_form *form, const char *p, const char *end)
{
    while (p < end) {
        if (end - p > STRETCH && !has_line_end(p)) {
            p += STRETCH;
            continue;
        }
        const char *until = end - p > STRETCH ? p + STRETCH : end;
        for (; (p = memchr(p, '\r', (size_t)(until - p))); p++) {
            size_t size = (size_t)(end - p) < form->border_size ? (size_t)(end - p) : form->border_size;
            if (memcmp(p, form->border, size) == 0)
                return p;
        }
        p = until;
    }
    return end;
}

/* A border has one CR, at its beginning: where it does not go on, none has begun within it. */
static const char *take_content(struct td_form *form, const char *p, const char *end)
{
    if (form->matched == 0) {
        const char *border = find_border(form, p, end);
        add(form, p, (size_t)(border - p));
        p = border;
    }
    size_t left = form->border_size - form->matched,
           size = (size_t)(end - p) < left ? (size_t)(end - p) : left;
    if (memcmp(p, form->border + form->matched, size) == 0) {
        form->matched += size;
        p += size;
    } else {
        add(form, form->border, form->matched);
        form->matched = 0;
    }
    if (form->matched == form->border_size && form->state != BROKEN) {
        form->matched = 0;
        form->line_end = 0;
        form->in_field = false;
        form->state = BETWEEN;
    }
    return p;
}

bool td_form_take(struct td_form *form, const char *bytes, size_t size)
{
    const char *p = bytes, *end = bytes + size;
    while (p < end && form->state != ENDED && form->state != BROKEN)
        p = form->state == BETWEEN   ? take_between(form, p, end)
            : form->state == HEADERS ? take_headers(form, p, end)
                                     : take_content(form, p, end);
    return form->state != BROKEN;
}

bool td_form_ended(const struct td_form *form)
{
    return form->state == ENDED;
}

/* --- Opening -------------------------------------------------------------------------------------------- */

struct td_form *td_form_open(const char *content_type, const struct td_form_sink *sink)
{
    char *edge = malloc(strlen(content_type) + 1);
    struct td_form *form = edge ? calloc(1, sizeof *form) : NULL;
    bool known = form && find_parameter(edge, content_type, "boundary") && *edge &&
                 strlen(edge) <= MOST_EDGE && !strpbrk(edge, "\r\n");
    if (known) {
        *form = (struct td_form){.sink = *sink, .state = CONTENT};
        form->border_size = sizeof before_edge - 1 + strlen(edge);
        memcpy(form->border, before_edge, sizeof before_edge - 1);
        memcpy(form->border + sizeof before_edge - 1, edge, strlen(edge));
        form->matched = 2; /* the first edge may stand at the very beginning, without a line end before it */
        td_buffer_init(&form->headers, MOST_HEADERS);
    } else {
        free(form);
        form = NULL;
    }
    free(edge);
    return form;
}

void td_form_close(struct td_form **form)
{
    if (!*form)
        return;
    td_buffer_release(&(*form)->headers);
    free(*form);
    *form = NULL;
}
