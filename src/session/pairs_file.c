/* pairs_file.c: see pairs_file.h. */
#include "session/pairs_file.h"

#include "base/buffer.h"
#include "base/json.h"
#include "format/json.h"
#include "session/pairs_layers.h"
#include "session/text_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A hundred bytes for each of half a million pairs. */
enum { MAX_FILE = 64 << 20, MAX_PARTS = 1024 };

static tdbg_status read_part(const json_t *pair, const char *key, size_t at, struct td_fusion *out,
                             struct tdbg_error *error)
{
    const json_t *part = json_object_get(pair, key);
    if (!part)
        return TDBG_OK;
    const json_t *which = json_array_get(part, 0), *all = json_array_get(part, 1);
    json_int_t index = json_integer_value(which), of = json_integer_value(all);
    if (json_array_size(part) != 2 || !json_is_integer(which) || !json_is_integer(all) || index < 0 ||
        index >= of || of > MAX_PARTS)
        return td_fail(error, TDBG_CORRUPT, "pair %zu: \"%s\" is not [which, of how many]", at, key);
    *out = (struct td_fusion){(int)index, (int)of};
    return TDBG_OK;
}

static tdbg_status read_pair(struct td_pairs *out, const json_t *pair, bool by_program,
                             struct tdbg_error *error)
{
    size_t at = out->count;
    const char *a = json_string_value(json_object_get(pair, "a"));
    const char *b = json_string_value(json_object_get(pair, "b"));
    if (!a || !b)
        return td_fail(error, TDBG_CORRUPT, "pair %zu has no \"a\" and \"b\" that are names", at);
    struct td_name_pair *slot = &out->list[at];
    *slot = (struct td_name_pair){.by_program = by_program};
    TD_TRY(read_part(pair, "a_part", at, &slot->fused_a, error));
    TD_TRY(read_part(pair, "b_part", at, &slot->fused_b, error));
    slot->a = td_arena_strdup(&out->arena, a);
    slot->b = td_arena_strdup(&out->arena, b);
    out->count++;
    return slot->a && slot->b ? TDBG_OK : td_fail_nomem(error);
}

static tdbg_status read_list(struct td_pairs *out, const json_t *list, bool by_program,
                             struct tdbg_error *error)
{
    size_t count = json_array_size(list);
    out->list = td_arena_array(&out->arena, count + 1, sizeof *out->list);
    if (!out->list)
        return td_fail_nomem(error);
    for (size_t i = 0; i < count; i++)
        TD_TRY(read_pair(out, json_array_get(list, i), by_program, error));
    return TDBG_OK;
}

tdbg_status td_pairs_of_json(struct td_pairs *out, const json_t *list, bool by_program,
                             struct tdbg_error *error)
{
    struct td_pairs result = {0};
    if (!json_is_array(list))
        return td_fail(error, TDBG_CORRUPT, "no array \"pairs\"");
    td_arena_init(&result.arena, TD_MAX_METADATA);
    tdbg_status status = read_list(&result, list, by_program, error);
    if (status == TDBG_OK)
        *out = result;
    else
        td_pairs_release(&result);
    return status;
}

tdbg_status td_pairs_parse(struct td_pairs *out, const char *what, const char *text, size_t size,
                           bool by_program, struct tdbg_error *error)
{
    json_t *root = NULL;
    TD_TRY(td_json_parse_object(&root, what, (const uint8_t *)text, size, 0, error));
    const json_t *version = json_object_get(root, "version");
    tdbg_status status = version && json_integer_value(version) != 1
                             ? td_fail(error, TDBG_UNSUPPORTED, "\"version\" is not 1")
                             : td_pairs_of_json(out, json_object_get(root, "pairs"), by_program, error);
    json_decref(root);
    if (status != TDBG_OK)
        td_error_prefix(error, what);
    return status;
}

void td_pairs_release(struct td_pairs *pairs)
{
    td_arena_release(&pairs->arena);
    *pairs = (struct td_pairs){0};
}

tdbg_status td_pairs_read(struct td_pairs *out, const char *path, struct tdbg_error *error)
{
    struct td_buffer text;
    td_buffer_init(&text, MAX_FILE);
    tdbg_status status = td_text_file_read(&text, path, "a list of pairs", error);
    if (status == TDBG_OK)
        status = td_pairs_parse(out, "list of pairs", td_buffer_text(&text), text.size, false, error);
    td_buffer_release(&text);
    if (status != TDBG_OK && error)
        td_error_prefix(error, path);
    return status;
}

static void write_part(struct td_json *j, const char *key, struct td_fusion fusion)
{
    if (fusion.of == 0)
        return;
    td_json_key(j, key);
    td_json_ints(j, (const int64_t[]){fusion.index, fusion.of}, 2);
}

static void write_unpaired(struct td_json *j, const struct td_matches *matches, const char *key, bool of_a)
{
    td_json_key(j, key);
    td_json_begin_array(j);
    for (size_t i = 0; i < matches->count; i++) {
        const struct td_match *m = &matches->pairs[i];
        const struct td_item *own = of_a ? m->a : m->b, *other = of_a ? m->b : m->a;
        if (own && !other)
            td_json_string(j, own->name);
    }
    td_json_end_array(j);
}

static void write_pairs(struct td_json *j, const struct td_matches *matches,
                        const struct td_layer_groups *groups)
{
    td_json_begin_object(j);
    td_json_field_int(j, "version", 1);
    td_json_key(j, "pairs");
    td_json_begin_array(j);
    for (size_t i = 0; i < matches->count; i++) {
        const struct td_match *m = &matches->pairs[i];
        const struct td_layer_group *group = groups->of[i];
        if (!m->a || !m->b || (group && group->first != i))
            continue;
        td_json_newline(j);
        td_json_begin_object(j);
        td_json_field_string(j, "a", group ? group->a : m->a->name);
        td_json_field_string(j, "b", group ? group->b : m->b->name);
        write_part(j, "a_part", m->fused_a);
        write_part(j, "b_part", m->fused_b);
        td_json_field_string(j, "strategy", td_strategy_name(m->strategy));
        td_json_end_object(j);
    }
    td_json_end_array(j);
    write_unpaired(j, matches, "only_a", true);
    write_unpaired(j, matches, "only_b", false);
    td_json_end_object(j);
    td_json_newline(j);
}

tdbg_status td_pairs_print(const struct td_matches *matches, FILE *file, struct tdbg_error *error)
{
    struct td_layer_groups groups;
    TD_TRY(td_layer_groups_find(&groups, matches, error));
    struct td_json *j = malloc(sizeof *j);
    bool written = false;
    if (j) {
        td_json_to_file(j, file);
        write_pairs(j, matches, &groups);
        written = td_json_finish(j);
    }
    td_layer_groups_release(&groups);
    if (!j)
        return td_fail_nomem(error);
    free(j);
    return written ? TDBG_OK : td_fail_errno(error, "cannot write");
}

static tdbg_status write_file(FILE *file, const struct td_matches *matches, struct tdbg_error *error)
{
    TD_TRY(td_pairs_print(matches, file, error));
    bool written = fflush(file) == 0 && fsync(fileno(file)) == 0;
    return written ? TDBG_OK : td_fail_errno(error, "cannot write");
}

tdbg_status td_pairs_write(const struct td_matches *matches, const char *path, struct tdbg_error *error)
{
    char *draft = NULL;
    if (asprintf(&draft, "%s.%ld.tmp", path, (long)getpid()) < 0)
        return td_fail_nomem(error);
    FILE *file = fopen(draft, "wxe");
    tdbg_status status = file ? write_file(file, matches, error) : td_fail_errno(error, "cannot create");
    if (file && fclose(file) != 0 && status == TDBG_OK)
        status = td_fail_errno(error, "cannot write");
    if (status == TDBG_OK && rename(draft, path) != 0)
        status = td_fail_errno(error, "cannot create");
    if (status != TDBG_OK && file)
        unlink(draft);
    if (status != TDBG_OK && error)
        td_error_prefix(error, path);
    free(draft);
    return status;
}
