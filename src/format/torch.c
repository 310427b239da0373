/* torch.c: reads what torch.save and torch.jit.save write since 1.6: a zip without compression.
 *
 *     NAME/data.pkl        the object; storages are persistent ids ('storage', type, key, location, elements)
 *     NAME/data/KEY        the bytes of storage KEY, used where they lie
 *     NAME/byteorder       "little" or "big"; little when missing
 *     NAME/version         what tells such a zip from any other with a data.pkl in it
 *     NAME/constants.pkl   TorchScript only: a tuple of tensors, their storages in NAME/constants/KEY
 *
 * A storage that is missing, or smaller than the object says, is an error for the tensors that lie in it.
 */
#include "format/reader.h"

#include "format/unpickle.h"
#include "io/zip.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct archive {
    struct td_zip zip;
    struct td_bundle *bundle;
    const uint8_t **data; /* of each member, once read: an inflated one is inflated once */
    const char *prefix;   /* "NAME/" */
    const char *folder;   /* of the storages: "data" or "constants" */
    bool swapped;
};

enum { NAME_SIZE = 1024 };

/* The member prefix + folder + '/' + name; folder may be "". */
static const struct td_zip_member *find_member(const struct td_zip *zip, const char *prefix,
                                               const char *folder, const char *name, size_t name_size)
{
    char path[NAME_SIZE];
    int length = snprintf(path, sizeof path, "%s%s%s%.*s", prefix, folder, *folder ? "/" : "",
                          name_size < NAME_SIZE ? (int)name_size : NAME_SIZE, name);
    return length < 0 || (size_t)length >= sizeof path ? NULL : td_zip_find(zip, path);
}

/* A member right beside data.pkl, or NULL. */
static const struct td_zip_member *find_beside(const struct archive *a, const char *name)
{
    return find_member(&a->zip, a->prefix, "", name, strlen(name));
}

/* The part of the name of the first "NAME/data.pkl" before it, with a version beside it. */
static bool find_prefix(struct td_zip *zip, const char **prefix)
{
    static const char object[] = "data.pkl";
    const size_t size = sizeof object - 1;
    for (size_t i = 0; i < zip->count; i++) {
        const char *name = zip->members[i].name;
        size_t length = strlen(name);
        bool ends = length >= size && length < NAME_SIZE && strcmp(name + length - size, object) == 0;
        if (!ends || (length > size && name[length - size - 1] != '/'))
            continue;
        char *found = td_arena_strndup(&zip->arena, name, length - size);
        if (found && find_member(zip, found, "", "version", 7)) {
            *prefix = found;
            return true;
        }
    }
    return false;
}

static bool probe(const struct td_source *source)
{
    struct td_zip zip;
    const char *prefix;
    if (!td_zip_probe(source->data, source->size) ||
        td_zip_open(&zip, source->data, source->size, NULL) != TDBG_OK)
        return false;
    bool found = find_prefix(&zip, &prefix);
    td_zip_release(&zip);
    return found;
}

static tdbg_status read_member(const struct archive *a, const struct td_zip_member *member,
                               const uint8_t **data, struct tdbg_error *error)
{
    size_t index = (size_t)(member - a->zip.members);
    if (!a->data[index])
        TD_TRY(td_zip_read(&a->zip, member, a->bundle, &a->data[index], error));
    *data = a->data[index];
    return TDBG_OK;
}

static tdbg_status find_storage(const struct td_unpickle *u, const struct td_pickle_value *id,
                                struct td_storage *out, struct tdbg_error *error)
{
    const struct archive *a = u->storages;
    struct td_storage_id parsed;
    const uint8_t *data;
    TD_TRY(td_storage_id_parse(id, &parsed, error));
    const struct td_zip_member *member =
        find_member(&a->zip, a->prefix, a->folder, parsed.key->text, parsed.key->count);
    int width = td_unpickle_width(parsed.key);
    if (!member)
        return td_fail(error, TDBG_CORRUPT, "storage %.*s is not in the file", width, parsed.key->text);
    if (member->size < parsed.bytes)
        return td_fail(error, TDBG_CORRUPT, "storage %.*s has %llu bytes, needs %llu", width,
                       parsed.key->text, (unsigned long long)member->size, (unsigned long long)parsed.bytes);
    TD_TRY(read_member(a, member, &data, error));
    *out = (struct td_storage){.data = data + parsed.view_offset,
                               .bytes = parsed.view_bytes,
                               .dtype = parsed.dtype,
                               .swapped = a->swapped};
    return TDBG_OK;
}

static tdbg_status read_byteorder(struct archive *a, struct tdbg_error *error)
{
    const struct td_zip_member *member = find_beside(a, "byteorder");
    const uint8_t *data;
    if (!member)
        return TDBG_OK;
    TD_TRY(read_member(a, member, &data, error));
    a->swapped = member->size == 3 && memcmp(data, "big", 3) == 0;
    if (!a->swapped && !(member->size == 6 && memcmp(data, "little", 6) == 0))
        return td_fail_at(error, TDBG_CORRUPT, member->offset, "a byte order that is neither little nor big");
    return TDBG_OK;
}

static tdbg_status read_pickle(struct archive *a, const char *name, const char *names_begin,
                               struct td_catalog *out, struct tdbg_error *error)
{
    const struct td_zip_member *member = find_beside(a, name);
    const uint8_t *data;
    struct td_arena arena;
    struct td_pickle pickle;
    TD_TRY(read_member(a, member, &data, error));
    td_arena_init(&arena, TD_MAX_METADATA);
    tdbg_status status = td_pickle_parse(data, (size_t)member->size, NULL, &arena, &pickle, error);
    if (status != TDBG_OK && error) {
        error->offset = member->method == 0 ? error->offset + member->offset : TDBG_NO_OFFSET;
        td_error_prefix(error, name);
    }
    if (status == TDBG_OK) {
        struct td_unpickle u = {.format = td_reader_torch.name,
                                .catalog = out,
                                .bundle = a->bundle,
                                .data = data,
                                .size = (size_t)member->size,
                                .find_storage = find_storage,
                                .storages = a};
        status = td_unpickle_walk(&u, pickle.root, names_begin, error);
    }
    td_arena_release(&arena);
    return status;
}

static tdbg_status read_archive(struct archive *a, struct td_catalog *out, struct tdbg_error *error)
{
    if (!find_prefix(&a->zip, &a->prefix))
        return td_fail(error, TDBG_CORRUPT, "no data.pkl with a version beside it");
    TD_TRY(read_byteorder(a, error));
    a->folder = "data";
    TD_TRY(read_pickle(a, "data.pkl", "", out, error));
    if (!find_beside(a, "constants.pkl"))
        return TDBG_OK;
    a->folder = "constants";
    return read_pickle(a, "constants.pkl", "constants", out, error);
}

static tdbg_status open_source(const struct td_source *source, struct td_catalog *out,
                               struct tdbg_error *error)
{
    struct archive a = {.bundle = source->bundle};
    TD_TRY(td_zip_open(&a.zip, source->data, source->size, error));
    a.data = calloc(a.zip.count ? a.zip.count : 1, sizeof *a.data);
    tdbg_status status = a.data ? read_archive(&a, out, error) : td_fail_nomem(error);
    free(a.data);
    td_zip_release(&a.zip);
    return status;
}

const struct td_reader td_reader_torch = {
    .name = "torch", .probe = probe, .open = open_source, .keeps_order = true};
