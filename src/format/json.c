/* json.c: see json.h. */
#include "format/json.h"

#include "base/limits.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The text need not be valid JSON: where it is not, jansson stops before the place where this scan and its
 * own reading part. */
tdbg_status td_json_measure(const char *what, const char *text, size_t size, uint64_t offset,
                            uint64_t most_values, struct tdbg_error *error)
{
    uint64_t values = 1;
    int depth = 0;
    bool quoted = false;
    for (size_t i = 0; i < size; i++) {
        char c = text[i];
        if (quoted) {
            if (c == '\\')
                i++;
            else if (c == '"')
                quoted = false;
            continue;
        }
        if (c == '"')
            quoted = true;
        else if (c == '{' || c == '[')
            depth++, values++;
        else if (c == ',')
            values++;
        else if (c == '}' || c == ']')
            depth--;
        if (depth > TD_MAX_DEPTH)
            return td_fail_at(error, TDBG_LIMIT, offset + i, "%s nests deeper than %d", what, TD_MAX_DEPTH);
        if (values > most_values)
            return td_fail_at(error, TDBG_LIMIT, offset + i, "%s holds more than %" PRIu64 " values", what,
                              most_values);
    }
    return TDBG_OK;
}

tdbg_status td_json_parse_object(json_t **out, const char *what, const uint8_t *text, size_t size,
                                 uint64_t offset, struct tdbg_error *error)
{
    /* A private copy: what was measured is what is parsed, even if somebody writes to the mapped file. */
    char *copy = malloc(size + 1);
    if (!copy)
        return td_fail_nomem(error);
    memcpy(copy, text, size);

    tdbg_status status = td_json_measure(what, copy, size, offset, TD_MAX_JSON_VALUES, error);
    json_t *root = NULL;
    if (status == TDBG_OK) {
        json_error_t trouble;
        root = json_loadb(copy, size, JSON_REJECT_DUPLICATES, &trouble);
        if (!root && json_error_code(&trouble) == json_error_out_of_memory)
            status = td_fail_nomem(error);
        else if (!root)
            status = td_fail_at(error, TDBG_CORRUPT, offset + (uint64_t)trouble.position,
                                "%s is not valid JSON: %s", what, trouble.text);
        else if (!json_is_object(root))
            status = td_fail_at(error, TDBG_CORRUPT, offset, "%s is not a JSON object", what);
    }
    free(copy);
    if (status == TDBG_OK)
        *out = root;
    else
        json_decref(root);
    return status;
}
