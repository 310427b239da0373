/* json.h: writing JSON as it comes, to a stream or a buffer, without holding the document.
 *
 *     struct td_json j;
 *     td_json_to_file(&j, stdout);
 *     td_json_begin_object(&j);
 *     td_json_key(&j, "name");
 *     td_json_string(&j, name);
 *     td_json_field_uint(&j, "count", count);
 *     td_json_end_object(&j);
 *     bool written = td_json_finish(&j);
 *
 * Commas are the writer's business. The error is sticky: ask once, at td_json_finish. NaN and infinities
 * become the strings "nan", "inf", "-inf"; bytes that are no UTF-8 become '?'.
 */
#ifndef TD_BASE_JSON_H
#define TD_BASE_JSON_H

#include "base/buffer.h"
#include "base/number.h"

#include <stdio.h>

struct td_json {
    FILE *file;               /* one of the two */
    struct td_buffer *buffer; /* borrowed */
    size_t used;
    bool comma, failed; /* the next value needs a comma in front; a write failed */
    bool in_html;
    int depth;
    char chunk[16384];
};

void td_json_to_file(struct td_json *j, FILE *file);

/* For a <script type="application/json">: no string can end it, every '<' is written as \u003c. */
void td_json_to_html(struct td_json *j, FILE *file);
void td_json_to_buffer(struct td_json *j, struct td_buffer *buffer);

/* Hands over what is pending (fflush is the caller's); false when anything failed on the way. */
bool td_json_finish(struct td_json *j);

void td_json_begin_object(struct td_json *j);
void td_json_end_object(struct td_json *j);
void td_json_begin_array(struct td_json *j);
void td_json_end_array(struct td_json *j);
void td_json_key(struct td_json *j, const char *key);

void td_json_string(struct td_json *j, const char *text); /* NULL: null */
void td_json_int(struct td_json *j, int64_t value);
void td_json_uint(struct td_json *j, uint64_t value);
void td_json_number(struct td_json *j, double value);
void td_json_float(struct td_json *j, double value, const struct td_float_kind *kind);
void td_json_bool(struct td_json *j, bool value);
void td_json_null(struct td_json *j);
void td_json_ints(struct td_json *j, const int64_t *values, size_t count); /* an array of them */
void td_json_text(struct td_json *j, const char *json);                    /* a value that is JSON already */
void td_json_newline(struct td_json *j);                                   /* white space between documents */

/* A key and its value. */
void td_json_field_string(struct td_json *j, const char *key, const char *text);
void td_json_field_int(struct td_json *j, const char *key, int64_t value);
void td_json_field_uint(struct td_json *j, const char *key, uint64_t value);
void td_json_field_number(struct td_json *j, const char *key, double value);
void td_json_field_bool(struct td_json *j, const char *key, bool value);

#endif
