/* intake.h: the body of a request as it arrives.
 *
 * JSON gathers in memory, up to a cap for each request and one for all of them, and is measured before it is
 * parsed. Files go to the folder of uploads as they come (uploads.h); those of a request that is refused or
 * breaks off leave nothing behind. A body that is refused half way is read on
 * and thrown away: the answer can only be sent after it.
 */
#ifndef TD_SERVE_INTAKE_H
#define TD_SERVE_INTAKE_H

#include "base/arena.h"
#include "base/buffer.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct td_field;
struct td_form;
struct td_request;
struct td_upload;

enum { TD_MAX_FIELDS = 64 };

struct td_intake {
    uint64_t received;
    struct td_buffer text; /* a JSON body; of a form, the text field that still comes */
    size_t held;           /* bytes of it that count for all requests */
    json_t *json;

    struct td_form *form;
    struct td_arena arena;    /* names and texts of fields */
    struct td_field *fields;  /* TD_MAX_FIELDS of them, in the arena */
    struct td_upload **files; /* the same: of field i, until it is finished */
    size_t field_count;
};

void td_intake_init(struct td_intake *intake);
void td_intake_release(struct td_intake *intake);

/* After the headers. False: it has been answered, and the body is not worth reading to its end. */
bool td_intake_begin(struct td_request *r);

/* False: hang up. */
bool td_intake_take(struct td_request *r, const char *bytes, size_t size);

/* The body is there: what the route wants of it is made, or the request answered. */
void td_intake_end(struct td_request *r);

/* Whether files wait to be finished, which takes as long as the disk takes; and doing it. */
bool td_intake_has_files(const struct td_request *r);
void td_intake_finish_files(struct td_request *r);

#endif
