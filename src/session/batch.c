/* batch.c: see batch.h. */
#include "session/batch.h"

#include "format/json.h"
#include "session/text_file.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* Thousands of comparisons; somebody writes or generates them one by one. */
enum { MAX_FILE = 16 << 20 };

const char *td_batch_outcome_name(enum td_batch_outcome outcome)
{
    static const char *const names[] = {"same", "diverged", "error"};
    return names[outcome];
}

/* --- reading -------------------------------------------------------------------------------------------- */

enum kind { TEXT, PATH, AMOUNT };

/* A rule given replaces the rule of the defaults as a whole. */
static const struct setting {
    const char *key;
    enum kind kind;
    bool rule;
    size_t offset;
} settings[] = {
    {"match", TEXT, false, offsetof(struct td_diff_setup, match)},
    {"threshold", AMOUNT, false, offsetof(struct td_diff_setup, threshold)},
    {"pairs", PATH, false, offsetof(struct td_diff_setup, pairs)},
    {"names", PATH, false, offsetof(struct td_diff_setup, names)},
    {"coverage", AMOUNT, false, offsetof(struct td_diff_setup, coverage)},
    {"layout", TEXT, false, offsetof(struct td_diff_setup, layout)},
    {"policy", TEXT, true, offsetof(struct td_diff_setup, policy)},
    {"rtol", AMOUNT, true, offsetof(struct td_diff_setup, rtol)},
    {"atol", AMOUNT, true, offsetof(struct td_diff_setup, atol)},
    {"reference", PATH, true, offsetof(struct td_diff_setup, reference)},
};

enum { SETTINGS = sizeof settings / sizeof *settings };

struct reading {
    struct td_batch *batch;
    const char *folder; /* with its slash; "" for the current one */
    struct tdbg_error *error;
};

/* The path as seen from where we are. */
static const char *from_here(struct reading *r, const char *path)
{
    return td_arena_printf(&r->batch->arena, "%s%s", path[0] == '/' ? "" : r->folder, path);
}

static tdbg_status read_text(struct reading *r, const json_t *value, const char *key, bool path,
                             const char **out)
{
    const char *text = json_string_value(value);
    if (!text || !*text)
        return td_fail(r->error, TDBG_CORRUPT, "\"%s\" is not a %s", key, path ? "path" : "text");
    *out = path ? from_here(r, text) : td_arena_strdup(&r->batch->arena, text);
    return *out ? TDBG_OK : td_fail_nomem(r->error);
}

static tdbg_status read_setting(struct reading *r, const struct setting *s, const json_t *value,
                                struct td_diff_setup *out)
{
    void *place = (char *)out + s->offset;
    if (s->kind != AMOUNT)
        return read_text(r, value, s->key, s->kind == PATH, place);
    if (!json_is_number(value) || !(json_number_value(value) >= 0))
        return td_fail(r->error, TDBG_CORRUPT, "\"%s\" is not a number of 0 or more", s->key);
    *(double *)place = json_number_value(value);
    return TDBG_OK;
}

static const struct setting *find_setting(const char *key)
{
    for (size_t i = 0; i < SETTINGS; i++)
        if (strcmp(settings[i].key, key) == 0)
            return &settings[i];
    return NULL;
}

static void forget_rule(struct td_diff_setup *setup)
{
    setup->policy = setup->reference = NULL;
    setup->rtol = setup->atol = -1;
}

static tdbg_status read_expectation(struct reading *r, const json_t *value, enum td_batch_outcome *out)
{
    const char *text = json_string_value(value);
    for (enum td_batch_outcome o = TD_SAME; text && o <= TD_DIFFERENT; o++)
        if (strcmp(text, td_batch_outcome_name(o)) == 0) {
            *out = o;
            return TDBG_OK;
        }
    return td_fail(r->error, TDBG_CORRUPT, "\"expect\" is neither \"same\" nor \"diverged\"");
}

/* Settings of the defaults or of a comparison, over those that `c` has already. null is as good as absent. */
static tdbg_status read_settings(struct reading *r, json_t *object, bool names, struct td_batch_entry *c)
{
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value)
    {
        const struct setting *s = find_setting(key);
        if (s && s->rule && !json_is_null(value)) {
            forget_rule(&c->setup);
            break;
        }
    }
    json_object_foreach(object, key, value)
    {
        const struct setting *s = find_setting(key);
        if (json_is_null(value))
            continue;
        if (s)
            TD_TRY(read_setting(r, s, value, &c->setup));
        else if (strcmp(key, "expect") == 0)
            TD_TRY(read_expectation(r, value, &c->expected));
        else if (names && strcmp(key, "name") == 0)
            TD_TRY(read_text(r, value, key, false, &c->name));
        else if (names && strcmp(key, "a") == 0)
            TD_TRY(read_text(r, value, key, true, &c->a));
        else if (names && strcmp(key, "b") == 0)
            TD_TRY(read_text(r, value, key, true, &c->b));
        else
            return td_fail(r->error, TDBG_CORRUPT, "no setting is called \"%.64s\"", key);
    }
    return TDBG_OK;
}

static tdbg_status read_comparison(struct reading *r, json_t *object, struct td_batch_entry *c)
{
    if (!json_is_object(object))
        return td_fail(r->error, TDBG_CORRUPT, "not an object");
    TD_TRY(read_settings(r, object, true, c));
    if (!c->a || !c->b)
        return td_fail(r->error, TDBG_CORRUPT, "no \"%c\" to compare", c->a ? 'b' : 'a');
    if (!c->name)
        c->name = td_arena_printf(&r->batch->arena, "%s against %s", c->a, c->b);
    if (!c->name)
        return td_fail_nomem(r->error);
    return td_diff_setup_check(&c->setup, r->error);
}

static tdbg_status blame(struct reading *r, tdbg_status status, const char *format, size_t at,
                         const char *name)
{
    char prefix[128];
    snprintf(prefix, sizeof prefix, format, at, name);
    if (status != TDBG_OK && r->error)
        td_error_prefix(r->error, prefix);
    return status;
}

static tdbg_status read_batch(struct reading *r, const json_t *root)
{
    struct td_batch *batch = r->batch;
    struct td_batch_entry common = {.setup = TD_DIFF_SETUP};
    const json_t *version = json_object_get(root, "version");
    json_t *defaults = json_object_get(root, "defaults"), *list = json_object_get(root, "comparisons");
    if (json_integer_value(version) != 1)
        return td_fail(r->error, TDBG_UNSUPPORTED, "\"version\" is not 1");
    if (defaults && !json_is_object(defaults))
        return td_fail(r->error, TDBG_CORRUPT, "\"defaults\" is not an object");
    if (json_array_size(list) == 0)
        return td_fail(r->error, TDBG_CORRUPT, "no array \"comparisons\" with a comparison in it");
    if (defaults)
        TD_TRY(blame(r, read_settings(r, defaults, false, &common), "defaults", 0, ""));
    batch->list = td_arena_array(&batch->arena, json_array_size(list), sizeof *batch->list);
    if (!batch->list)
        return td_fail_nomem(r->error);
    for (; batch->count < json_array_size(list); batch->count++) {
        struct td_batch_entry *c = &batch->list[batch->count];
        *c = common;
        tdbg_status status = read_comparison(r, json_array_get(list, batch->count), c);
        TD_TRY(blame(r, status, c->name ? "comparison %zu, \"%.80s\"" : "comparison %zu", batch->count + 1,
                     c->name));
    }
    return TDBG_OK;
}

static tdbg_status parse(struct reading *r, const struct td_buffer *text)
{
    json_t *root = NULL;
    TD_TRY(
        td_json_parse_object(&root, "batch", (const uint8_t *)td_buffer_text(text), text->size, 0, r->error));
    tdbg_status status = read_batch(r, root);
    json_decref(root);
    return status;
}

tdbg_status td_batch_read(struct td_batch *out, const char *path, struct tdbg_error *error)
{
    struct td_batch batch = {0};
    struct td_buffer text;
    const char *slash = strrchr(path, '/');
    td_arena_init(&batch.arena, TD_MAX_METADATA);
    td_buffer_init(&text, MAX_FILE);
    struct reading r = {.batch = &batch, .error = error};
    r.folder = td_arena_strndup(&batch.arena, path, slash ? (size_t)(slash - path) + 1 : 0);
    tdbg_status status = r.folder ? td_text_file_read(&text, path, "a batch", error) : td_fail_nomem(error);
    if (status == TDBG_OK)
        status = parse(&r, &text);
    td_buffer_release(&text);
    if (status == TDBG_OK)
        *out = batch;
    else
        td_batch_release(&batch);
    return status;
}

void td_batch_release(struct td_batch *batch)
{
    td_arena_release(&batch->arena);
    *batch = (struct td_batch){0};
}

/* --- running -------------------------------------------------------------------------------------------- */

static struct td_first *keep_first(struct td_arena *arena, const struct td_diff *diff)
{
    const struct td_pair *p = diff->result.first;
    struct td_first *first = td_arena_alloc(arena, sizeof *first);
    if (!first)
        return NULL;
    *first = (struct td_first){
        .index = (size_t)(p - diff->result.pairs),
        .layer = p->layer,
        .stage = td_arena_strdup(arena, p->stage),
        .name = td_arena_strdup(arena, p->name),
        .place = p->layer >= 0 ? td_arena_printf(arena, "layer %lld, %s", (long long)p->layer, p->stage)
                               : td_arena_strdup(arena, p->name),
    };
    if (p->outcome.diagnosis)
        first->diagnosis = *p->outcome.diagnosis;
    return first->stage && first->name && first->place ? first : NULL;
}

/* Pairs that could not be compared leave the question open. */
static tdbg_status say_errors(const struct td_diff *diff, struct tdbg_error *error)
{
    for (size_t i = 0; i < diff->result.count; i++)
        if (diff->result.pairs[i].outcome.ruling.verdict == TD_ERROR)
            return td_fail(error, TDBG_MISMATCH, "%zu of %zu pairs could not be compared, first %s: %s",
                           diff->result.summary.errors, diff->result.summary.pairs,
                           diff->result.pairs[i].name, diff->result.pairs[i].outcome.ruling.reason);
    return TDBG_OK;
}

static tdbg_status keep(struct td_batch *batch, struct td_batch_entry *c, const struct td_diff *diff,
                        struct tdbg_error *error)
{
    c->summary = diff->result.summary;
    c->outcome = diff->result.first ? TD_DIFFERENT : TD_SAME;
    if (diff->result.first) {
        c->first = keep_first(&batch->arena, diff);
        return c->first ? TDBG_OK : td_fail_nomem(error);
    }
    if (diff->result.summary.pairs == 0)
        td_fail(&c->error, TDBG_MISMATCH, "not enough paired to say: nothing in A has a partner in B");
    else if (!diff->result.summary.enough)
        td_fail(&c->error, TDBG_MISMATCH,
                "not enough paired to say: %.0f %% of A and %.0f %% of B have a partner",
                floor(100 * diff->result.summary.coverage_a), floor(100 * diff->result.summary.coverage_b));
    if (!diff->result.summary.enough || say_errors(diff, &c->error) != TDBG_OK)
        c->outcome = TD_FAILED;
    return TDBG_OK;
}

tdbg_status td_batch_run(struct td_batch *batch, struct td_pool *pool, struct td_job *job,
                         struct tdbg_error *error)
{
    const struct td_work work = {pool, job, NULL};
    for (size_t i = 0; i < batch->count; i++) {
        struct td_batch_entry *c = &batch->list[i];
        struct td_diff *diff = NULL;
        tdbg_status status = td_diff_run(&diff, c->a, c->b, &c->setup, &work, &c->error);
        if (td_job_cancelled(job)) {
            td_diff_close(&diff);
            return td_fail(error, TDBG_CANCELLED, "stopped");
        }
        c->outcome = TD_FAILED;
        if (status == TDBG_OK)
            status = keep(batch, c, diff, error);
        else
            status = TDBG_OK; /* c->error says why */
        td_diff_close(&diff);
        TD_TRY(status);
    }
    return TDBG_OK;
}
