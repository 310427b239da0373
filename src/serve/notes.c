/* notes.c: see notes.h. */
#include "serve/notes.h"

#include <stdlib.h>
#include <string.h>

static int append(const char *text, size_t size, void *out)
{
    td_buffer_append(out, text, size);
    return 0;
}

static bool print(const json_t *notes, struct td_buffer *out)
{
    return notes && json_dump_callback(notes, append, out, JSON_COMPACT) == 0 && !out->failed;
}

bool td_notes_speak_of_pairs(const char *notes)
{
    json_t *root = json_loads(notes, 0, NULL);
    bool speak = json_object_get(root, "order") || json_object_get(root, "mappings");
    json_decref(root);
    return speak;
}

/* --- other numbers -------------------------------------------------------------------------------------- */

/* The two names as one text; NULL: no memory. What is on one side only has one name. */
static char *identify(const json_t *pair)
{
    const char *a = json_string_value(json_object_get(json_object_get(pair, "a"), "name"));
    const char *b = json_string_value(json_object_get(json_object_get(pair, "b"), "name"));
    char *text = NULL;
    /* Names have no control codes: they were cleaned. */
    return asprintf(&text, "%s\n%s", a ? a : "", b ? b : "") < 0 ? NULL : text;
}

static const json_t *pairs_of(const json_t *result)
{
    return json_object_get(result, "pairs");
}

/* {identity: index}; of two alike the first counts. NULL: no memory. */
static json_t *number_pairs(const json_t *result)
{
    json_t *numbers = json_object();
    bool good = numbers != NULL;
    for (size_t i = 0; good && i < json_array_size(pairs_of(result)); i++) {
        char *text = identify(json_array_get(pairs_of(result), i));
        good = text && (json_object_get(numbers, text) ||
                        json_object_set_new(numbers, text, json_integer((json_int_t)i)) == 0);
        free(text);
    }
    if (!good)
        json_decref(numbers);
    return good ? numbers : NULL;
}

/* Where the pair that had this number is now; NULL: nowhere. */
static const json_t *find_again(const json_t *before, const json_t *numbers, size_t index)
{
    const json_t *pair = json_array_get(pairs_of(before), index);
    char *text = pair ? identify(pair) : NULL;
    const json_t *found = text ? json_object_get(numbers, text) : NULL;
    free(text);
    return found;
}

static bool all_stayed(const json_t *before, const json_t *after)
{
    size_t count = json_array_size(pairs_of(before));
    bool stayed = count == json_array_size(pairs_of(after));
    for (size_t i = 0; stayed && i < count; i++) {
        char *was = identify(json_array_get(pairs_of(before), i));
        char *is = identify(json_array_get(pairs_of(after), i));
        stayed = was && is && strcmp(was, is) == 0;
        free(was);
        free(is);
    }
    return stayed;
}

static bool carry_mappings(json_t *notes, const json_t *before, const json_t *numbers)
{
    json_t *old = json_object_get(notes, "mappings"), *kept = json_object(), *mapping;
    const char *key;
    bool good = kept != NULL;
    json_object_foreach(old, key, mapping)
    {
        const json_t *found = find_again(before, numbers, (size_t)strtoull(key, NULL, 10));
        char index[24];
        if (!found || !good)
            continue;
        snprintf(index, sizeof index, "%" JSON_INTEGER_FORMAT, json_integer_value(found));
        good = json_object_set(kept, index, mapping) == 0;
    }
    if (good && json_object_size(kept))
        good = json_object_set(notes, "mappings", kept) == 0;
    else
        json_object_del(notes, "mappings");
    json_decref(kept);
    return good;
}

tdbg_status td_notes_carry(const char *notes, const char *before, const char *after, struct td_buffer *out,
                           struct tdbg_error *error)
{
    json_t *root = json_loads(notes, 0, NULL);
    json_t *old = json_loads(before, 0, NULL), *now = json_loads(after, 0, NULL);
    json_t *numbers = number_pairs(now);
    bool good = root && numbers;
    if (good && !all_stayed(old, now)) {
        json_object_del(root, "order");
        good = carry_mappings(root, old, numbers);
    }
    good = good && print(root, out);
    json_decref(numbers);
    json_decref(now);
    json_decref(old);
    json_decref(root);
    return good ? TDBG_OK : td_fail_nomem(error);
}

/* --- in part -------------------------------------------------------------------------------------------- */

/* As deep as the body of a request may be nested. */
static bool merge(json_t *into, const json_t *patch)
{
    const char *key;
    json_t *value;
    bool good = true;
    json_object_foreach((json_t *)(uintptr_t)patch, key, value)
    {
        json_t *old = json_object_get(into, key);
        if (json_is_null(value)) {
            json_object_del(into, key);
        } else if (!json_is_object(value)) {
            good = json_object_set(into, key, value) == 0 && good;
        } else {
            if (!json_is_object(old)) /* what it holds of nulls is not to be kept either */
                good = json_object_set_new(into, key, json_object()) == 0 && good;
            good = good && merge(json_object_get(into, key), value);
        }
    }
    return good;
}

tdbg_status td_notes_merge(const char *notes, const json_t *patch, struct td_buffer *out,
                           struct tdbg_error *error)
{
    json_t *root = json_loads(notes, 0, NULL);
    bool good = root && merge(root, patch) && print(root, out);
    json_decref(root);
    return good ? TDBG_OK : td_fail_nomem(error);
}
