/* sidecar.c: see sidecar.h. msprobe's dump.json:
 *
 *     {"task": "tensor", "level": "mix", "dump_data_dir": "/…/dump_tensor_data",
 *      "data": {"Module.fc1.Linear.forward.0": {"input_args": [{…, "data_name": "….forward.0.input.0.pt"}],
 *                                               "parameters": {"weight": {…}}, "output": [{…}]},
 *               "Functional.gelu.0.forward": {…}}}
 *
 * A name of a file is looked up without its extension, then with one part after the other cut off its end,
 * until what is left is a key; the part that was cut off next to the key tells what it was to the call:
 * parameters and inputs are there before the output. Names that the entries state themselves ("data_name")
 * come first, for names too long for a file are replaced by others there.
 */
#include "format/sidecar.h"

#include "base/limits.h"
#include "format/json.h"
#include "io/path.h"

#include <stdlib.h>
#include <string.h>

enum { PARTS = 4, MAX_DEPTH = 16 };

struct entry {
    const char *name; /* the tree's */
    size_t length;
    uint64_t place;
};

struct td_sidecar {
    json_t *root;
    struct entry *entries; /* by name */
    size_t count, capacity;
    uint64_t end;
};

bool td_sidecar_probe(const struct td_source *source)
{
    static const char data[] = "\"data\"", folder[] = "\"dump_data_dir\"";
    enum { BEGINNING = 4096 };
    size_t size = source->size < BEGINNING ? source->size : BEGINNING, at = 0;
    while (at < size && source->data[at] && strchr(" \t\r\n", source->data[at]))
        at++;
    return at < size && source->data[at] == '{' && memmem(source->data, size, folder, sizeof folder - 1) &&
           memmem(source->data, size, data, sizeof data - 1);
}

bool td_sidecar_accompanied(const struct td_source *source)
{
    static const char *const names[] = {"stack.json", "construct.json"};
    const struct td_source *beside;
    const char *base = td_path_base(source->name);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(base, names[i]) == 0)
            return td_source_sibling(source, "dump.json", &beside, NULL) == TDBG_OK &&
                   td_sidecar_probe(beside);
    return false;
}

static int compare_text(const char *a, size_t a_length, const char *b, size_t b_length)
{
    int order = memcmp(a, b, a_length < b_length ? a_length : b_length);
    return order ? order : (a_length > b_length) - (a_length < b_length);
}

static int compare_entries(const void *x, const void *y)
{
    const struct entry *a = x, *b = y;
    int order = compare_text(a->name, a->length, b->name, b->length);
    return order ? order : (a->place > b->place) - (a->place < b->place);
}

static tdbg_status add(struct td_sidecar *s, const char *name, size_t length, uint64_t place,
                       struct tdbg_error *error)
{
    if (s->count == s->capacity) {
        size_t capacity = s->capacity ? 2 * s->capacity : 256;
        struct entry *more = reallocarray(s->entries, capacity, sizeof *more);
        if (!more)
            return td_fail_nomem(error);
        s->entries = more;
        s->capacity = capacity;
    }
    s->entries[s->count++] = (struct entry){name, length, place};
    return TDBG_OK;
}

/* "weight.pt" without ".pt"; what stands behind the last '.' of "input.0" is no extension. */
static size_t stem_of(const char *name)
{
    static const char *const extensions[] = {".pt", ".pth", ".npy", ".bin"};
    size_t length = strlen(name);
    for (size_t i = 0; i < sizeof extensions / sizeof *extensions; i++) {
        size_t n = strlen(extensions[i]);
        if (length > n && strcmp(name + length - n, extensions[i]) == 0)
            return length - n;
    }
    return length;
}

/* What stands behind the key, and is a parameter's, an input's or an output's. */
static uint64_t part_of(const char *text, size_t length)
{
    static const char *const parts[] = {"parameters", "input", "output"};
    for (uint64_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (length >= strlen(parts[i]) && strncmp(text, parts[i], strlen(parts[i])) == 0)
            return i;
    return PARTS - 1;
}

/* The files that the call of a key names as its own, in lists and objects within it. */
static tdbg_status add_files(struct td_sidecar *s, json_t *value, uint64_t place, int depth,
                             struct tdbg_error *error)
{
    const char *key;
    json_t *inner;
    size_t i;
    if (depth > MAX_DEPTH)
        return TDBG_OK;
    if (json_is_array(value))
        json_array_foreach(value, i, inner) TD_TRY(add_files(s, inner, place, depth + 1, error));
    if (!json_is_object(value))
        return TDBG_OK;
    const char *file = json_string_value(json_object_get(value, "data_name"));
    if (file)
        TD_TRY(add(s, file, stem_of(file), place, error));
    json_object_foreach(value, key, inner)
    {
        uint64_t part = depth == 0 ? part_of(key, strlen(key)) : 0;
        TD_TRY(add_files(s, inner, place + part, depth + 1, error));
    }
    return TDBG_OK;
}

static tdbg_status fill(struct td_sidecar *s, const struct td_source *source, struct tdbg_error *error)
{
    if (source->size > TD_MAX_SAFETENSORS_HEADER)
        return td_fail(error, TDBG_LIMIT, "a list of calls of %zu bytes, %llu at most", source->size,
                       (unsigned long long)TD_MAX_SAFETENSORS_HEADER);
    TD_TRY(td_json_parse_object(&s->root, "list of calls", source->data, source->size, 0, error));
    json_t *data = json_object_get(s->root, "data"), *call;
    const char *key;
    uint64_t place = 1;
    if (!json_is_object(data))
        return td_fail(error, TDBG_CORRUPT, "its data is no object");
    json_object_foreach(data, key, call)
    {
        TD_TRY(add(s, key, strlen(key), place, error));
        TD_TRY(add_files(s, call, place, 0, error));
        place += PARTS;
    }
    s->end = place;
    if (s->count)
        qsort(s->entries, s->count, sizeof *s->entries, compare_entries);
    return TDBG_OK;
}

tdbg_status td_sidecar_open(struct td_sidecar **out, const struct td_source *source, struct tdbg_error *error)
{
    struct td_sidecar *s = calloc(1, sizeof *s);
    if (!s)
        return td_fail_nomem(error);
    tdbg_status status = fill(s, source, error);
    if (status == TDBG_OK)
        *out = s;
    else
        td_sidecar_close(&s);
    return status;
}

void td_sidecar_close(struct td_sidecar **sidecar)
{
    if (!*sidecar)
        return;
    json_decref((*sidecar)->root);
    free((*sidecar)->entries);
    free(*sidecar);
    *sidecar = NULL;
}

/* The first entry of that name, or NULL. */
static const struct entry *find(const struct td_sidecar *s, const char *name, size_t length)
{
    size_t low = 0, high = s->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare_text(s->entries[middle].name, s->entries[middle].length, name, length) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    bool found =
        low < s->count && s->entries[low].length == length && memcmp(s->entries[low].name, name, length) == 0;
    return found ? &s->entries[low] : NULL;
}

uint64_t td_sidecar_place(const struct td_sidecar *s, const char *file)
{
    const char *name = td_path_base(file);
    size_t length = stem_of(name);
    const struct entry *e = find(s, name, length);
    if (e)
        return e->place;
    for (size_t cut = length; cut > 0; cut--) {
        if (name[cut - 1] != '.' || !(e = find(s, name, cut - 1)))
            continue;
        return e->place + part_of(name + cut, length - cut);
    }
    return 0;
}

uint64_t td_sidecar_end(const struct td_sidecar *s)
{
    return s->end;
}
