/* original_body.c: reading the requests of the original API, and sending what was written.
 *
 * Its clients are pages and scripts of others: every field is checked, and what is wrong is named.
 */
#include "serve/original.h"

bool td_body_is_object(struct td_exchange *x)
{
    if (!json_is_object(x->body))
        td_answer_error(x, 400, "the body must be a JSON object");
    return json_is_object(x->body);
}

bool td_body_int(struct td_exchange *x, const char *key, int64_t low, int64_t high, const int64_t *otherwise,
                 int64_t *out)
{
    const json_t *value = json_object_get(x->body, key);
    if (!value && otherwise) {
        *out = *otherwise;
        return true;
    }
    int64_t number = json_integer_value(value);
    if (!json_is_integer(value) || number < low || number > high) {
        td_answer_error(x, 400, "%s must be a whole number from %lld to %lld", key, (long long)low,
                        (long long)high);
        return false;
    }
    *out = number;
    return true;
}

const char *td_body_string(struct td_exchange *x, const char *key, const char *otherwise)
{
    const json_t *value = json_object_get(x->body, key);
    if (!value && otherwise)
        return otherwise;
    if (!json_is_string(value))
        td_answer_error(x, 400, "%s must be a string", key);
    return json_string_value(value);
}

bool td_body_match(struct td_exchange *x, const struct td_listing *listing, size_t *position)
{
    static const int64_t first = 0;
    int64_t index;
    if (listing->count == 0) {
        td_answer_error(x, 400, "there are no matches");
        return false;
    }
    if (!td_body_int(x, "match_index", 0, (int64_t)listing->count - 1, &first, &index))
        return false;
    *position = (size_t)index;
    return true;
}

void td_answer_written(struct td_exchange *x, struct td_json *j, struct td_buffer *body, tdbg_status status,
                       const struct tdbg_error *error)
{
    if (status != TDBG_OK) {
        td_buffer_release(body);
        td_answer_failure(x, error);
    } else if (td_json_finish(j)) {
        td_answer_json(x, 200, body);
    } else {
        td_buffer_release(body);
        td_answer_error(x, 503, "there is no memory for the answer");
    }
}
