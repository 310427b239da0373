/* form.h: a body of multipart/form-data (RFC 7578), field by field as it arrives.
 *
 *     --EDGE CRLF
 *     Content-Disposition: form-data; name="model1"; filename="a.zip" CRLF
 *     CRLF
 *     bytes of the field CRLF
 *     --EDGE CRLF        the next field
 *     --EDGE--           the end
 *
 * The edge is told by the Content-Type. What stands before the first and after the last is skipped.
 */
#ifndef TD_SERVE_FORM_H
#define TD_SERVE_FORM_H

#include <stdbool.h>
#include <stddef.h>

struct td_form;

/* What the fields are handed to; the context comes back. False: stop here. */
struct td_form_sink {
    bool (*begin)(void *context, const char *name, const char *file_name); /* file_name NULL: a text */
    bool (*add)(void *context, const char *bytes, size_t size);            /* to the field that began last */
    void *context;
};

/* NULL: the type tells no edge, or there is no memory. */
struct td_form *td_form_open(const char *content_type, const struct td_form_sink *sink);
void td_form_close(struct td_form **form);

/* More of the body; false once it is broken or the sink said stop. */
bool td_form_take(struct td_form *form, const char *bytes, size_t size);

/* Whether the end was seen. */
bool td_form_ended(const struct td_form *form);

#endif
