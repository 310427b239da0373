/* torch_legacy.c: reads what torch.save wrote before 1.6, and still does with
 * _use_new_zipfile_serialization=False: pickles in a row, then raw bytes.
 *
 *     pickle   0x1950a86a20f9469cfc6c, the magic number
 *     pickle   1001, the version of the protocol
 *     pickle   {"little_endian": ..., ...}: facts of the machine; the bytes below are little-endian all the
 * same pickle   the object; storages are persistent ids ('storage', type, key, location, elements, view)
 *     pickle   the keys of the storages, in the order of what follows
 *     per key  8 bytes: number of elements; then the elements
 *
 * The number of bytes of a storage follows from its type, which only the object tells. A storage that is cut
 * short, missing, or of another size than the object says is an error for the tensors that lie in it.
 *
 * Before 0.1.10 the file was a tar of three files, "storages", "tensors" and "pickle": recognised, not read.
 */
#include "format/reader.h"

#include "base/checked.h"
#include "base/cursor.h"
#include "format/unpickle.h"

#include <stdlib.h>
#include <string.h>

static const char magic[] = "\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19",
                  magic_decimal[] = "119547037146038801333356";

/* The magic number is within the first bytes, whatever the protocol. */
enum { PROBE_BYTES = 64, VERSION = 1001 };

struct storage {
    struct td_storage_id id;
    size_t order;         /* of its first mention */
    const uint8_t *data;  /* NULL: not found */
    uint64_t bytes, have; /* as its own count says, and how many of them there are */
};

struct legacy {
    struct td_arena arena;
    struct td_pickle object;
    size_t object_at;
    struct storage *storages; /* by key */
    size_t count;
};

static bool is_magic(const struct td_pickle_value *value)
{
    return td_pickle_is(value, TD_PICKLE_BIGINT, value->decimal ? magic_decimal : magic);
}

static bool probe_magic(const uint8_t *data, size_t size)
{
    struct td_arena arena;
    struct td_pickle pickle;
    td_arena_init(&arena, 1 << 16);
    bool found = td_pickle_parse(data, size < PROBE_BYTES ? size : PROBE_BYTES, NULL, &arena, &pickle,
                                 NULL) == TDBG_OK &&
                 is_magic(pickle.root);
    td_arena_release(&arena);
    return found;
}

/* A tar's header begins with the name of its first member and has "ustar" at 257. */
static bool probe_tar(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"sys_info", "storages", "tensors", "pickle"};
    if (size < 512 || memcmp(data + 257, "ustar", 5) != 0)
        return false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strncmp((const char *)data, names[i], 100) == 0)
            return true;
    return false;
}

static bool probe(const struct td_source *source)
{
    return probe_magic(source->data, source->size) || probe_tar(source->data, source->size);
}

/* The next pickle of the row. */
static tdbg_status next_pickle(struct legacy *l, struct td_cursor *c, struct td_pickle *out,
                               struct tdbg_error *error)
{
    tdbg_status status = td_pickle_parse(c->data + c->at, td_cursor_left(c), NULL, &l->arena, out, error);
    if (status == TDBG_OK)
        c->at += out->consumed;
    else if (error && error->offset != TDBG_NO_OFFSET)
        error->offset += c->at;
    return status;
}

static int compare_keys(const struct td_pickle_value *a, const struct td_pickle_value *b)
{
    if (a->count != b->count)
        return a->count < b->count ? -1 : 1;
    return memcmp(a->text, b->text, a->count);
}

static int compare_storages(const void *a, const void *b)
{
    const struct storage *x = a, *y = b;
    int order = compare_keys(x->id.key, y->id.key);
    return order ? order : x->order < y->order ? -1 : x->order > y->order;
}

static int compare_key_to_storage(const void *key, const void *storage)
{
    return compare_keys(key, ((const struct storage *)storage)->id.key);
}

static struct storage *find(const struct legacy *l, const struct td_pickle_value *key)
{
    if (l->count == 0 || (key->kind != TD_PICKLE_STR && key->kind != TD_PICKLE_BYTES))
        return NULL;
    return bsearch(key, l->storages, l->count, sizeof *l->storages, compare_key_to_storage);
}

/* Every storage the object mentions, once. Ids that are no storage are somebody else's to report. */
static tdbg_status collect_storages(struct legacy *l, struct tdbg_error *error)
{
    size_t count = 0, kept = 0;
    l->storages = td_arena_array(&l->arena, l->object.persid_count, sizeof *l->storages);
    if (!l->storages)
        return td_fail(error, TDBG_LIMIT, "more than %zu storages", l->object.persid_count);
    for (size_t i = 0; i < l->object.persid_count; i++) {
        struct storage *s = &l->storages[count];
        *s = (struct storage){.order = i};
        if (td_storage_id_parse(l->object.persids[i]->id, &s->id, NULL) == TDBG_OK)
            count++;
    }
    qsort(l->storages, count, sizeof *l->storages, compare_storages);
    for (size_t i = 0; i < count; i++)
        if (i == 0 || compare_keys(l->storages[i].id.key, l->storages[kept - 1].id.key) != 0)
            l->storages[kept++] = l->storages[i];
    l->count = kept;
    return TDBG_OK;
}

/* Finds each storage's bytes. Beyond one that is cut short or unknown nothing can be found. */
static void locate_storages(struct legacy *l, const struct td_pickle_value *keys, struct td_cursor c)
{
    for (size_t i = 0; i < keys->count; i++) {
        struct storage *s = find(l, keys->items[i]);
        uint64_t elements = td_cursor_u64(&c), bytes;
        if (!s || s->data || c.bad || !td_mul_u64(elements, td_dtype_size(s->id.dtype), &bytes))
            return;
        s->data = c.data + c.at;
        s->bytes = bytes;
        s->have = bytes < td_cursor_left(&c) ? bytes : td_cursor_left(&c);
        if (!td_cursor_take(&c, bytes))
            return;
    }
}

static tdbg_status parse(struct legacy *l, const uint8_t *data, size_t size, struct tdbg_error *error)
{
    struct td_cursor c = td_cursor_init(data, size);
    struct td_pickle pickle;
    int64_t version;
    TD_TRY(next_pickle(l, &c, &pickle, error));
    if (!is_magic(pickle.root))
        return td_fail_at(error, TDBG_CORRUPT, 0, "no torch file: another magic number");
    TD_TRY(next_pickle(l, &c, &pickle, error));
    TD_TRY(td_unpickle_int(pickle.root, "protocol version", &version, error));
    if (version != VERSION)
        return td_fail(error, TDBG_UNSUPPORTED, "version %lld of torch's legacy format, %d is known",
                       (long long)version, VERSION);
    TD_TRY(next_pickle(l, &c, &pickle, error));
    l->object_at = c.at;
    TD_TRY(next_pickle(l, &c, &l->object, error));
    TD_TRY(collect_storages(l, error));
    TD_TRY(next_pickle(l, &c, &pickle, error));
    if (pickle.root->kind != TD_PICKLE_LIST && pickle.root->kind != TD_PICKLE_TUPLE)
        return td_fail(error, TDBG_CORRUPT, "%s where the keys of the storages belong",
                       td_pickle_kind_name(pickle.root->kind));
    locate_storages(l, pickle.root, c);
    return TDBG_OK;
}

static tdbg_status find_storage(const struct td_unpickle *u, const struct td_pickle_value *id,
                                struct td_storage *out, struct tdbg_error *error)
{
    struct td_storage_id parsed;
    TD_TRY(td_storage_id_parse(id, &parsed, error));
    const struct storage *s = find(u->storages, parsed.key);
    int width = td_unpickle_width(parsed.key);
    if (!s || !s->data)
        return td_fail(error, TDBG_CORRUPT, "storage %.*s is not in the file", width, parsed.key->text);
    if (s->have < s->bytes)
        return td_fail(error, TDBG_CORRUPT, "storage %.*s is cut short: %llu of %llu bytes", width,
                       parsed.key->text, (unsigned long long)s->have, (unsigned long long)s->bytes);
    if (s->bytes != s->id.bytes || parsed.bytes > s->bytes)
        return td_fail(error, TDBG_CORRUPT, "storage %.*s has %llu bytes, needs %llu", width,
                       parsed.key->text, (unsigned long long)s->bytes, (unsigned long long)parsed.bytes);
    *out = (struct td_storage){
        .data = s->data + parsed.view_offset, .bytes = parsed.view_bytes, .dtype = parsed.dtype};
    return TDBG_OK;
}

static tdbg_status open_source(const struct td_source *source, struct td_catalog *out,
                               struct tdbg_error *error)
{
    if (probe_tar(source->data, source->size))
        return td_fail(error, TDBG_UNSUPPORTED,
                       "torch's tar format of before version 0.1.10: load and save it with a newer torch");
    struct legacy l = {0};
    td_arena_init(&l.arena, TD_MAX_METADATA);
    tdbg_status status = parse(&l, source->data, source->size, error);
    if (status == TDBG_OK) {
        struct td_unpickle u = {.format = td_reader_torch_legacy.name,
                                .catalog = out,
                                .bundle = source->bundle,
                                .data = source->data + l.object_at,
                                .size = l.object.consumed,
                                .find_storage = find_storage,
                                .storages = &l};
        status = td_unpickle_walk(&u, l.object.root, "", error);
    }
    td_arena_release(&l.arena);
    return status;
}

tdbg_status td_torch_legacy_storage(const uint8_t *data, size_t size, struct td_storage *out,
                                    struct tdbg_error *error)
{
    struct legacy l = {0};
    td_arena_init(&l.arena, TD_MAX_METADATA);
    tdbg_status status = parse(&l, data, size, error);
    const struct td_unpickle u = {.storages = &l};
    if (status == TDBG_OK && l.object.root->kind != TD_PICKLE_PERSID)
        status = td_fail(error, TDBG_CORRUPT, "%s where a storage belongs",
                         td_pickle_kind_name(l.object.root->kind));
    if (status == TDBG_OK)
        status = find_storage(&u, l.object.root->id, out, error);
    if (status != TDBG_OK && error)
        error->offset = TDBG_NO_OFFSET; /* it counts from `data`, which nobody sees */
    td_arena_release(&l.arena);
    return status;
}

const struct td_reader td_reader_torch_legacy = {
    .name = "torch", .probe = probe, .open = open_source, .keeps_order = true};
