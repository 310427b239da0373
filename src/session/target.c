/* target.c: see target.h. */
#include "session/target.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool exists(const char *path)
{
    struct stat st;
    return *path && (stat(path, &st) == 0 || lstat(path, &st) == 0);
}

/* Where PATH ends when nothing exists: at the first colon, or before a trailing slice. */
static size_t guess_path(const char *text)
{
    size_t length = strlen(text), colon = strcspn(text, ":");
    const char *bracket = strrchr(text, '[');
    if (length > 1 && text[length - 1] == ']' && bracket && (size_t)(bracket - text) < colon)
        return (size_t)(bracket - text);
    return colon;
}

tdbg_status td_target_init(struct td_target *out, const char *text, struct tdbg_error *error)
{
    size_t length = strlen(text), end = length;
    struct td_target target = {.path = strdup(text)};
    if (!target.path)
        return td_fail_nomem(error);
    bool sliced = length > 0 && text[length - 1] == ']';
    while (end > 0) {
        target.path[end] = 0;
        if (exists(target.path))
            break;
        do
            end--;
        while (end > 0 && text[end] != ':' && !(sliced && text[end] == '['));
    }
    if (end == 0)
        end = guess_path(text);
    memcpy(target.path, text, end);
    target.path[end] = 0;
    target.name = strdup(text + end + (text[end] == ':'));
    if (!target.name) {
        td_target_release(&target);
        return td_fail_nomem(error);
    }
    *out = target;
    return TDBG_OK;
}

void td_target_release(struct td_target *target)
{
    free(target->path);
    free(target->name);
    *target = (struct td_target){0};
}

tdbg_status td_target_resolve(const struct td_target *target, const struct td_input *input,
                              struct td_selection *out, char **slice, struct tdbg_error *error)
{
    size_t index = 0, length = strlen(target->name);
    char *name = strdup(target->name), *text = NULL;
    tdbg_status status = TDBG_OK;
    char *bracket = name ? strrchr(name, '[') : NULL;
    if (bracket && name[length - 1] == ']' && !td_input_find_exact(input, name, &index)) {
        text = strndup(bracket + 1, length - (size_t)(bracket - name) - 2);
        *bracket = 0;
    } else {
        text = strdup("");
    }
    if (!name || !text)
        status = td_fail_nomem(error);
    if (status == TDBG_OK)
        status = td_input_find(input, name, &index, error);
    if (status == TDBG_OK)
        status = td_selection_init(out, td_input_tensor(input, index), text, error);
    if (status == TDBG_OK) {
        *slice = text;
        text = NULL;
    }
    free(text);
    free(name);
    return status;
}
