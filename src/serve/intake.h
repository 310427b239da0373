/* intake.h: the body of a request as it arrives.
 *
 * JSON gathers in memory, up to a cap for each request and one for all of them, and is measured before it is
 * parsed. Files go to the data folder as they come (uploads.h). A body that is refused half way is read on
 * and thrown away: the answer can only be sent after it.
 */
#ifndef TD_SERVE_INTAKE_H
#define TD_SERVE_INTAKE_H

#include "base/arena.h"
#include "base/buffer.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct td_request;

struct td_intake {
    uint64_t received;
    struct td_buffer text; /* of a JSON body */
    size_t held;           /* bytes of it that count for all requests */
    json_t *json;
};

void td_intake_init(struct td_intake *intake);
void td_intake_release(struct td_intake *intake);

/* After the headers. False: it has been answered, and the body is not worth reading to its end. */
bool td_intake_begin(struct td_request *r);

/* False: hang up. */
bool td_intake_take(struct td_request *r, const char *bytes, size_t size);

/* The body is there: what the route wants of it is made, or the request answered. */
void td_intake_end(struct td_request *r);

#endif
