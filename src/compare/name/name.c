/* name.c: see name.h.
 *
 * A dot separates a file from its extension and a module from its parameter, so "norm.weight" and
 * "norm.npy" look alike. Only endings in the table are extensions.
 */
#include "compare/name/name.h"

#include <string.h>
#include <strings.h>

static const char *const extensions[] = {
    "pth", "pt", "bin", "ckpt", "safetensors", "npy", "npz", "gguf", "onnx", "pkl", "pickle", "tensor",
};

static size_t without_extension(const char *file, size_t folder, size_t length)
{
    size_t dot = length;
    while (dot > folder && file[dot - 1] != '.')
        dot--;
    if (dot <= folder + 1)
        return length;
    for (size_t i = 0; i < sizeof extensions / sizeof *extensions; i++)
        if (strlen(extensions[i]) == length - dot &&
            strncasecmp(extensions[i], file + dot, length - dot) == 0)
            return dot - 1;
    return length;
}

/* ":0" ends the names of one framework's tensors and is no key. */
static bool is_key(const char *text)
{
    return text[strspn(text, "0123456789")] != '\0';
}

/* Words for the only tensor of a file whose writer insists on a key: they name nothing. */
static bool is_filler(const char *key)
{
    static const char *const fillers[] = {"tensor", "data", "array", "arr_0"};
    for (size_t i = 0; i < sizeof fillers / sizeof *fillers; i++)
        if (strcasecmp(key, fillers[i]) == 0)
            return true;
    return false;
}

struct td_name td_name_split(const char *name)
{
    const char *colon = strchr(name, ':');
    struct td_name out = {.file = name, .length = strlen(name)};
    if (colon && is_key(colon + 1)) {
        out.key = is_filler(colon + 1) ? NULL : colon + 1;
        out.length = (size_t)(colon - name);
    }
    for (size_t i = 0; i < out.length; i++)
        if (name[i] == '/')
            out.folder = i + 1;
    out.stem = without_extension(name, out.folder, out.length);
    return out;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (unsigned char)c >= 0x80;
}

bool td_word_next(const char *text, size_t length, size_t *at, bool split_digits, struct td_word *out)
{
    size_t i = *at;
    while (i < length && !is_digit(text[i]) && !is_letter(text[i]))
        i++;
    if (i >= length)
        return false;
    size_t begin = i;
    bool number = is_digit(text[i]), mixed = false;
    for (; i < length && (is_digit(text[i]) || is_letter(text[i])); i++) {
        if (is_digit(text[i]) == number)
            continue;
        if (split_digits)
            break;
        mixed = true;
    }
    *out = (struct td_word){text + begin, i - begin, number && !mixed};
    *at = i;
    return true;
}

bool td_word_is(const struct td_word *word, const char *text)
{
    return strlen(text) == word->length && strncasecmp(word->text, text, word->length) == 0;
}
