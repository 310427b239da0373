/* settings.c: see settings.h. */
#include "serve/settings.h"

#include <float.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

enum kind { TEXT, NUMBER, COUNT };

/* A hundred bytes each: a body of the size that the server takes holds no more. */
enum { MOST_PAIRS = 1 << 18 };

static const struct member {
    const char *key;
    enum kind kind;
    double most;
    size_t offset;
} members[] = {
    {"match", TEXT, 0, offsetof(struct td_diff_setup, match)},
    {"threshold", NUMBER, 1, offsetof(struct td_diff_setup, threshold)},
    {"coverage", NUMBER, 1, offsetof(struct td_diff_setup, coverage)},
    {"policy", TEXT, 0, offsetof(struct td_diff_setup, policy)},
    {"rtol", NUMBER, DBL_MAX, offsetof(struct td_diff_setup, rtol)},
    {"atol", NUMBER, DBL_MAX, offsetof(struct td_diff_setup, atol)},
    {"reference", TEXT, 0, offsetof(struct td_diff_setup, reference)},
    {"layout", TEXT, 0, offsetof(struct td_diff_setup, layout)},
    {"top", COUNT, TD_MOST_TOP, offsetof(struct td_diff_setup, top)},
};

static const struct member *find_member(const char *key)
{
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        if (strcmp(members[i].key, key) == 0)
            return &members[i];
    return NULL;
}

static tdbg_status read_member(const struct member *m, const json_t *value, struct td_diff_setup *out,
                               struct tdbg_error *error)
{
    void *place = (char *)out + m->offset;
    const char *text = json_string_value(value);
    double number = json_number_value(value);
    bool fits = number >= 0 && number <= m->most;
    switch (m->kind) {
    case TEXT:
        if (!text || !*text)
            return td_fail(error, TDBG_MISUSE, "\"%s\" is not a text", m->key);
        *(const char **)place = text;
        return TDBG_OK;
    case NUMBER:
        if (!json_is_number(value) || !fits)
            return td_fail(error, TDBG_MISUSE, "\"%s\" is not a number of 0 %s", m->key,
                           m->most == 1 ? "to 1" : "or more");
        *(double *)place = number;
        return TDBG_OK;
    case COUNT:
        if (!json_is_integer(value) || !fits)
            return td_fail(error, TDBG_MISUSE, "\"%s\" is not a whole number of 0 to %.0f", m->key, m->most);
        *(int64_t *)place = json_integer_value(value);
        return TDBG_OK;
    }
    return TDBG_OK;
}

static tdbg_status read_pairs(struct td_settings *s, const json_t *value, struct tdbg_error *error)
{
    if (json_array_size(value) > MOST_PAIRS)
        return td_fail(error, TDBG_MISUSE, "more than %d pairs by hand", MOST_PAIRS);
    if (td_pairs_of_json(&s->pairs, value, false, error) != TDBG_OK) {
        if (error && error->status == TDBG_CORRUPT)
            error->status = TDBG_MISUSE;
        return error ? error->status : TDBG_MISUSE;
    }
    s->setup.manual = s->pairs.list;
    s->setup.manual_count = s->pairs.count;
    return TDBG_OK;
}

/* The content of a file of names, or its object; no path: a client reads no files of the server. */
static tdbg_status read_names(struct td_settings *s, json_t *value, struct tdbg_error *error)
{
    const char *text = json_string_value(value);
    struct tdbg_error why;
    tdbg_status status = text ? td_names_parse(&s->names, text, json_string_length(value), &why)
                              : td_names_of_json(&s->names, value, &why);
    if (status != TDBG_OK)
        return td_fail(error, status == TDBG_CORRUPT || status == TDBG_LIMIT ? TDBG_MISUSE : status,
                       "\"names\": %s", why.message);
    s->setup.rules = s->names.list;
    s->setup.rule_count = s->names.count;
    return TDBG_OK;
}

/* Whether the chain is one, which pairing nothing with nothing tells. */
static tdbg_status check_match(const struct td_diff_setup *setup, struct tdbg_error *error)
{
    static const struct td_side nothing;
    struct td_match_options options = {.strategy = setup->match, .threshold = fmax(setup->threshold, 0)};
    struct td_match_entry entry;
    struct td_matches matches;
    for (const char *chain = setup->match; chain && td_match_chain_next(&chain, &entry);)
        if (entry.name_length == 7 && memcmp(entry.name, "program", 7) == 0)
            return td_fail(error, TDBG_UNSUPPORTED,
                           "a matcher that is a program runs only from the command line");
    TD_TRY(td_match_sides(&matches, &nothing, &nothing, &options, NULL, error));
    td_matches_release(&matches);
    return TDBG_OK;
}

static tdbg_status read_all(struct td_settings *s, struct tdbg_error *error)
{
    const char *key;
    json_t *value;
    json_object_foreach(s->root, key, value)
    {
        const struct member *m = find_member(key);
        if (json_is_null(value))
            continue;
        if (m)
            TD_TRY(read_member(m, value, &s->setup, error));
        else if (strcmp(key, "pairs") == 0)
            TD_TRY(read_pairs(s, value, error));
        else if (strcmp(key, "names") == 0)
            TD_TRY(read_names(s, value, error));
        else
            return td_fail(error, TDBG_MISUSE, "no setting is called \"%.64s\"", key);
    }
    TD_TRY(td_diff_setup_check(&s->setup, error));
    return check_match(&s->setup, error);
}

tdbg_status td_settings_init(struct td_settings *out, const json_t *object, struct tdbg_error *error)
{
    struct td_settings s = {.setup = TD_DIFF_SETUP};
    if (object && !json_is_null(object) && !json_is_object(object))
        return td_fail(error, TDBG_MISUSE, "\"settings\" is not an object");
    s.root = json_is_object(object) ? json_deep_copy(object) : json_object();
    if (!s.root)
        return td_fail_nomem(error);
    tdbg_status status = read_all(&s, error);
    if (status == TDBG_OK)
        *out = s;
    else
        td_settings_release(&s);
    return status;
}

tdbg_status td_settings_parse(struct td_settings *out, const char *text, struct tdbg_error *error)
{
    json_t *root = text ? json_loads(text, JSON_REJECT_DUPLICATES, NULL) : NULL;
    if (text && !root)
        return td_fail(error, TDBG_MISUSE, "the settings are not JSON");
    tdbg_status status = td_settings_init(out, root, error);
    json_decref(root);
    return status;
}

void td_settings_release(struct td_settings *s)
{
    td_names_release(&s->names);
    td_pairs_release(&s->pairs);
    json_decref(s->root);
    *s = (struct td_settings){0};
}

char *td_settings_print(const struct td_settings *s)
{
    return json_dumps(s->root, JSON_COMPACT);
}
