/* index.c: a sharded model through its index, *.safetensors.index.json or *.bin.index.json.
 *
 *     {"metadata": {"total_size": 16060522496},
 *      "weight_map": {"layers.0.weight": "model-00001-of-00004.safetensors", …}}
 *
 * Each shard is a file beside the index, opened by whatever reader takes it. Tensors come shard by shard, in
 * the order of the shards' names and then of the file; the weight map of a large model is sorted by name and
 * says nothing about order. The index decides what belongs: a tensor it names but the shard lacks, one the
 * shard has but the index does not name, and a shard that cannot be opened are all reported, and the rest
 * goes on.
 */
#include "format/json.h"
#include "format/reader.h"

#include <stdlib.h>
#include <string.h>

static bool probe(const struct td_source *source)
{
    static const char key[] = "\"weight_map\"";
    size_t at = 0;
    while (at < source->size && source->data[at] && strchr(" \t\r\n", source->data[at]))
        at++;
    return at < source->size && source->data[at] == '{' &&
           memmem(source->data, source->size, key, sizeof key - 1);
}

/* Is some key of the index mapped to `file`? Looks for the string in the place of a value instead of parsing:
 * this is asked for every file of a folder. */
static bool maps_to(const struct td_source *index, const char *file)
{
    size_t length = strlen(file);
    const char *text = (const char *)index->data, *end = text + index->size, *at = text;
    while ((at = memmem(at, (size_t)(end - at), file, length))) {
        const char *before = at, *after = at + length;
        if (before > text && before[-1] == '"' && after < end && *after == '"') {
            for (before--; before > text && strchr(" \t\r\n", before[-1]) && before[-1]; before--)
                ;
            if (before > text && before[-1] == ':')
                return true;
        }
        at += length; /* a name holds no quote, so no quoted one begins within another hit */
    }
    return false;
}

static bool covers(const struct td_source *source, const char *name)
{
    const char *slash = strrchr(source->name, '/');
    size_t folder = slash ? (size_t)(slash - source->name) + 1 : 0;
    if (strncmp(source->name, name, folder) != 0 || !name[folder])
        return false;
    return maps_to(source, name + folder);
}

/* One entry of the weight map; both strings are the JSON tree's. */
struct place {
    const char *shard, *tensor;
    bool found;
};

static int by_shard_and_tensor(const void *left, const void *right)
{
    const struct place *a = left, *b = right;
    int order = strcmp(a->shard, b->shard);
    return order ? order : strcmp(a->tensor, b->tensor);
}

static struct place *find_place(struct place *places, size_t count, const char *tensor)
{
    struct place wanted = {.tensor = tensor};
    if (!count)
        return NULL;
    wanted.shard = places[0].shard;
    return bsearch(&wanted, places, count, sizeof *places, by_shard_and_tensor);
}

/* Moves the shard's tensors that the index places there to the index's catalogue. */
static tdbg_status take_tensors(struct td_catalog *shard, struct place *places, size_t count,
                                struct td_catalog *out, struct tdbg_error *error)
{
    if (!td_arena_join(&out->arena, &shard->arena))
        return td_fail(error, TDBG_LIMIT, "more names and descriptors than tdbg takes on");
    for (size_t i = 0; i < shard->count; i++) {
        const struct td_tensor *tensor = &shard->tensors[i];
        struct place *place = find_place(places, count, tensor->name);
        if (!place) {
            TD_TRY(td_catalog_skip(out, tensor->name, error, "in %s, but not in the index", places[0].shard));
            continue;
        }
        place->found = true;
        TD_TRY(td_catalog_add(out, tensor->name, *tensor, error));
    }
    for (size_t i = 0; i < shard->skip_count; i++) {
        struct place *place = find_place(places, count, shard->skips[i].name);
        if (place)
            place->found = true;
        TD_TRY(td_catalog_skip(out, shard->skips[i].name, error, "%s", shard->skips[i].reason));
    }
    for (size_t i = 0; i < count; i++)
        if (!places[i].found)
            TD_TRY(td_catalog_skip(out, places[i].tensor, error, "in the index, but not in %s",
                                   places[i].shard));
    return TDBG_OK;
}

static tdbg_status open_shard(const struct td_source *index, const char *name, struct td_catalog *out,
                              struct tdbg_error *error)
{
    const struct td_source *source;
    TD_TRY(td_source_sibling(index, name, &source, error));
    const struct td_reader *reader = td_reader_for(source);
    if (!reader || reader == &td_reader_index)
        return td_fail(error, TDBG_UNSUPPORTED, "not a tensor file");
    return reader->open(source, out, error);
}

/* The reason alone: the name is said beside it. */
static const char *without_name(const char *message, const char *name)
{
    size_t length = strlen(name);
    return !strncmp(message, name, length) && !strncmp(message + length, ": ", 2) ? message + length + 2
                                                                                  : message;
}

/* The places of one shard. */
static tdbg_status read_shard(const struct td_source *index, struct place *places, size_t count,
                              struct td_catalog *out, struct tdbg_error *error)
{
    struct td_catalog shard;
    struct tdbg_error why;
    td_catalog_init(&shard);
    tdbg_status status = open_shard(index, places[0].shard, &shard, &why);
    if (status == TDBG_OK)
        status = take_tensors(&shard, places, count, out, error);
    else
        status = td_catalog_skip(out, places[0].shard, error, "%s (holds %zu of the index's tensors)",
                                 without_name(why.message, places[0].shard), count);
    td_catalog_release(&shard);
    return status;
}

static tdbg_status collect(json_t *map, struct place *places, struct tdbg_error *error)
{
    const char *tensor;
    json_t *shard;
    json_object_foreach(map, tensor, shard)
    {
        if (!json_is_string(shard))
            return td_fail(error, TDBG_CORRUPT, "%s: its place in weight_map is not a file name", tensor);
        *places++ = (struct place){.shard = json_string_value(shard), .tensor = tensor};
    }
    return TDBG_OK;
}

static tdbg_status read_map(const struct td_source *index, json_t *map, struct td_catalog *out,
                            struct tdbg_error *error)
{
    size_t count = json_object_size(map);
    struct place *places = calloc(count + 1, sizeof *places);
    if (!places)
        return td_fail_nomem(error);
    tdbg_status status = collect(map, places, error);
    if (status == TDBG_OK)
        qsort(places, count, sizeof *places, by_shard_and_tensor);
    int shards = 0;
    for (size_t i = 0, next; status == TDBG_OK && i < count; i = next) {
        for (next = i + 1; next < count && !strcmp(places[next].shard, places[i].shard);)
            next++;
        if (++shards > TD_MAX_SHARDS)
            status = td_fail(error, TDBG_LIMIT, "names more than %d files", TD_MAX_SHARDS);
        else
            status = read_shard(index, &places[i], next - i, out, error);
    }
    free(places);
    return status;
}

static tdbg_status open_source(const struct td_source *source, struct td_catalog *out,
                               struct tdbg_error *error)
{
    json_t *root;
    if (source->size > TD_MAX_SAFETENSORS_HEADER)
        return td_fail(error, TDBG_LIMIT, "an index of %zu bytes, %llu at most", source->size,
                       (unsigned long long)TD_MAX_SAFETENSORS_HEADER);
    TD_TRY(td_json_parse_object(&root, "index", source->data, source->size, 0, error));
    json_t *map = json_object_get(root, "weight_map");
    tdbg_status status = json_is_object(map) ? read_map(source, map, out, error)
                                             : td_fail(error, TDBG_CORRUPT, "weight_map is not a map");
    json_decref(root);
    return status;
}

const struct td_reader td_reader_index = {
    .name = "index", .probe = probe, .open = open_source, .covers = covers};
