/* names_file.c: see names_file.h. Both forms end in one function that checks a rule and keeps it. */
#include "session/names_file.h"

#include "base/buffer.h"
#include "base/utf8.h"
#include "format/json.h"
#include "session/text_file.h"

#include <stdio.h>
#include <string.h>

/* A hundred bytes for each of ten thousand rules. */
enum { MAX_FILE = 1 << 20, MAX_TEXT = 512 };

struct span {
    const char *at;
    size_t size;
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static struct span trim(struct span s)
{
    while (s.size && is_blank(s.at[0]))
        s = (struct span){s.at + 1, s.size - 1};
    while (s.size && is_blank(s.at[s.size - 1]))
        s.size--;
    return s;
}

/* --- one rule ------------------------------------------------------------------------------------------- */

/* The number of {L} in it, one at most; other braces mean nothing. */
static tdbg_status count_layers(struct span s, const char *what, int *out, struct tdbg_error *error)
{
    *out = 0;
    for (size_t i = 0; i < s.size; i++) {
        bool layer = s.size - i >= 3 && memcmp(s.at + i, "{L}", 3) == 0;
        if (layer) {
            ++*out;
            i += 2;
        } else if (s.at[i] == '{' || s.at[i] == '}') {
            return td_fail(error, TDBG_CORRUPT, "'%c' in the %s that is no part of {L}", s.at[i], what);
        }
    }
    return *out <= 1 ? TDBG_OK : td_fail(error, TDBG_CORRUPT, "{L} more than once in the %s", what);
}

static tdbg_status check_text(struct span s, const char *what, struct tdbg_error *error)
{
    if (s.size == 0)
        return td_fail(error, TDBG_CORRUPT, "no %s", what);
    if (s.size > MAX_TEXT)
        return td_fail(error, TDBG_LIMIT, "a %s of more than %d bytes", what, MAX_TEXT);
    if (!td_utf8_valid(s.at, s.size))
        return td_fail(error, TDBG_CORRUPT, "a %s that is not UTF-8", what);
    for (size_t i = 0; i < s.size; i++)
        if ((unsigned char)s.at[i] < ' ' || s.at[i] == 0x7f)
            return td_fail(error, TDBG_CORRUPT, "a control character in the %s", what);
    return TDBG_OK;
}

static tdbg_status keep_rule(struct td_names *out, struct span pattern, struct span stage,
                             struct tdbg_error *error)
{
    int layers[2];
    TD_TRY(check_text(pattern, "pattern", error));
    TD_TRY(check_text(stage, "stage", error));
    TD_TRY(count_layers(pattern, "pattern", &layers[0], error));
    TD_TRY(count_layers(stage, "stage", &layers[1], error));
    if (layers[1] > layers[0])
        return td_fail(error, TDBG_CORRUPT, "{L} in the stage, and none in the pattern to say which");
    if (memchr(stage.at, '*', stage.size) && !memchr(pattern.at, '*', pattern.size))
        return td_fail(error, TDBG_CORRUPT, "'*' in the stage, and none in the pattern to say what it is");
    if (out->count == TD_MOST_NAME_RULES)
        return td_fail(error, TDBG_LIMIT, "more than %d rules", TD_MOST_NAME_RULES);
    struct td_name_rule *rule = &out->list[out->count];
    rule->pattern = td_arena_strndup(&out->arena, pattern.at, pattern.size);
    rule->stage = td_arena_strndup(&out->arena, stage.at, stage.size);
    if (!rule->pattern || !rule->stage)
        return td_fail_nomem(error);
    out->count++;
    return TDBG_OK;
}

/* --- the two forms -------------------------------------------------------------------------------------- */

static struct span without_comment(struct span line)
{
    for (size_t i = 0; i < line.size; i++)
        if (line.at[i] == '#' && (i == 0 || is_blank(line.at[i - 1])))
            return (struct span){line.at, i};
    return line;
}

static tdbg_status read_line(struct td_names *out, struct span line, struct tdbg_error *error)
{
    line = trim(without_comment(line));
    if (line.size == 0)
        return TDBG_OK;
    const char *equals = memchr(line.at, '=', line.size);
    if (!equals)
        return td_fail(error, TDBG_CORRUPT, "no '=': a rule is PATTERN = STAGE");
    struct span pattern = trim((struct span){line.at, (size_t)(equals - line.at)});
    struct span stage = trim((struct span){equals + 1, line.size - (size_t)(equals - line.at) - 1});
    return keep_rule(out, pattern, stage, error);
}

static tdbg_status read_lines(struct td_names *out, struct span text, struct tdbg_error *error)
{
    for (size_t number = 1; text.size; number++) {
        const char *end = memchr(text.at, '\n', text.size);
        struct span line = {text.at, end ? (size_t)(end - text.at) : text.size};
        tdbg_status status = read_line(out, line, error);
        if (status != TDBG_OK) {
            char prefix[32];
            snprintf(prefix, sizeof prefix, "line %zu", number);
            td_error_prefix(error, prefix);
            return status;
        }
        size_t step = line.size + (end != NULL);
        text = (struct span){text.at + step, text.size - step};
    }
    return TDBG_OK;
}

static tdbg_status read_members(struct td_names *out, json_t *object, struct tdbg_error *error)
{
    const char *key;
    json_t *value;
    if (!json_is_object(object))
        return td_fail(error, TDBG_CORRUPT, "no object of \"PATTERN\": \"STAGE\"");
    json_object_foreach(object, key, value)
    {
        struct span stage = {json_string_value(value), json_string_length(value)};
        tdbg_status status = stage.at
                                 ? keep_rule(out, trim((struct span){key, strlen(key)}), trim(stage), error)
                                 : td_fail(error, TDBG_CORRUPT, "what it stands for is no text");
        if (status != TDBG_OK) {
            char prefix[80];
            snprintf(prefix, sizeof prefix, "\"%.64s\"", key);
            td_error_prefix(error, prefix);
            return status;
        }
    }
    return TDBG_OK;
}

/* --- from outside --------------------------------------------------------------------------------------- */

static tdbg_status begin(struct td_names *names, struct tdbg_error *error)
{
    *names = (struct td_names){0};
    td_arena_init(&names->arena, TD_MAX_METADATA);
    names->list = td_arena_array(&names->arena, TD_MOST_NAME_RULES, sizeof *names->list);
    return names->list ? TDBG_OK : td_fail_nomem(error);
}

static tdbg_status finish(struct td_names *out, struct td_names *names, tdbg_status status)
{
    if (status == TDBG_OK)
        *out = *names;
    else
        td_names_release(names);
    return status;
}

tdbg_status td_names_of_json(struct td_names *out, json_t *object, struct tdbg_error *error)
{
    struct td_names names;
    tdbg_status status = begin(&names, error);
    if (status == TDBG_OK)
        status = read_members(&names, object, error);
    return finish(out, &names, status);
}

tdbg_status td_names_parse(struct td_names *out, const char *text, size_t size, struct tdbg_error *error)
{
    size_t at = 0;
    while (at < size && (is_blank(text[at]) || text[at] == '\n'))
        at++;
    if (size - at >= 1 && text[at] == '{' && !(size - at >= 3 && memcmp(text + at, "{L}", 3) == 0)) {
        json_t *root = NULL;
        TD_TRY(td_json_parse_object(&root, "names", (const uint8_t *)text, size, 0, error));
        tdbg_status status = td_names_of_json(out, root, error);
        json_decref(root);
        return status;
    }
    struct td_names names;
    tdbg_status status = begin(&names, error);
    if (status == TDBG_OK)
        status = read_lines(&names, (struct span){text, size}, error);
    return finish(out, &names, status);
}

void td_names_release(struct td_names *names)
{
    td_arena_release(&names->arena);
    *names = (struct td_names){0};
}

tdbg_status td_names_read(struct td_names *out, const char *path, struct tdbg_error *error)
{
    struct td_buffer text;
    td_buffer_init(&text, MAX_FILE);
    tdbg_status status = td_text_file_read(&text, path, "a file of names", error);
    if (status == TDBG_OK)
        status = td_names_parse(out, td_buffer_text(&text), text.size, error);
    td_buffer_release(&text);
    if (status != TDBG_OK && error)
        td_error_prefix(error, path);
    return status;
}
