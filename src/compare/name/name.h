/* name.h: the parts of a tensor's name as session/input.h joins them: folder/file.ext:key. */
#ifndef TD_COMPARE_NAME_NAME_H
#define TD_COMPARE_NAME_NAME_H

#include <stdbool.h>
#include <stddef.h>

struct td_name {
    const char *file; /* with its folders; a name that is no file's counts as one without an extension */
    size_t folder;    /* length of the folders, with the last '/' */
    size_t stem;      /* length of the file without a tensor file's extension */
    size_t length;    /* of the file */
    const char *key;  /* NULL: the file's only tensor, or one with a key that names nothing ("tensor") */
};

struct td_name td_name_split(const char *name);

/* A run of letters, of digits, or of both ("fc1"): what people tell names apart by. */
struct td_word {
    const char *text;
    size_t length;
    bool number; /* digits only */
};

/* The next word at or after *at, which moves behind it; false at the end. "layer3" is "layer" and "3" when
 * `split_digits`. Bytes beyond ASCII are letters. */
bool td_word_next(const char *text, size_t length, size_t *at, bool split_digits, struct td_word *out);

/* Whatever the case of its letters. */
bool td_word_is(const struct td_word *word, const char *text);

#endif
