/* fuzz_form.c: any bytes as a form: a line for the type, then the body. However the body is cut into pieces,
 * the same fields come out. */
#include "serve/form.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* What came out: names and contents, one behind the other, each name between bytes that tell its kind. */
struct story {
    uint8_t *text;
    size_t size, room;
};

static bool tell(struct story *story, const void *bytes, size_t size)
{
    if (size > story->room - story->size)
        abort(); /* a form has no more in it than its bytes */
    memcpy(story->text + story->size, bytes, size);
    story->size += size;
    return true;
}

static bool begin(void *context, const char *name, const char *file_name)
{
    tell(context, name, strlen(name) + 1);
    tell(context, file_name ? "F" : "T", 1);
    return tell(context, file_name ? file_name : "", file_name ? strlen(file_name) + 1 : 1);
}

static bool add(void *context, const char *bytes, size_t size)
{
    return tell(context, bytes, size);
}

/* In pieces of sizes that the body itself tells; all at once where `seed` is 0. */
static bool read_form(const char *type, const char *body, size_t size, unsigned seed, struct story *story)
{
    struct td_form *form = td_form_open(type, &(struct td_form_sink){begin, add, story});
    bool good = form != NULL;
    for (size_t at = 0; form && at < size;) {
        size_t piece = seed ? 1 + ((unsigned char)body[at] * seed + at) % 97 : size;
        piece = piece < size - at ? piece : size - at;
        char *copy = malloc(piece); /* so that reading past it is seen */
        if (!copy)
            break;
        memcpy(copy, body + at, piece);
        good = td_form_take(form, copy, piece);
        free(copy);
        at += piece;
    }
    good = good && td_form_ended(form);
    td_form_close(&form);
    return good;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *line = memchr(data, '\n', size);
    if (!line)
        return 0;
    char *type = strndup((const char *)data, (size_t)(line - data));
    const char *body = (const char *)line + 1;
    size_t left = size - (size_t)(line + 1 - data), room = 4 * left + 64;
    struct story whole = {malloc(room), 0, room}, pieces = {malloc(room), 0, room};
    if (type && whole.text && pieces.text) {
        bool good = read_form(type, body, left, 0, &whole);
        for (unsigned seed = 1; seed <= 2; seed++) {
            pieces.size = 0;
            if (read_form(type, body, left, seed, &pieces) != good || pieces.size != whole.size ||
                memcmp(pieces.text, whole.text, whole.size) != 0)
                abort();
        }
    }
    free(pieces.text);
    free(whole.text);
    free(type);
    return 0;
}
