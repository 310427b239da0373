/* pickle_file.c: reads a plain pickle: numpy arrays, tensors and numbers in dicts and lists.
 *
 * A pickle has no magic number. Since protocol 2 it begins with 0x80 and the protocol, followed by an opcode;
 * before that it begins with the opcode of its outermost value and is taken for a pickle only when its name
 * says so and it ends as a pickle must. Bytes after the first pickle are reported, not read.
 */
#include "format/reader.h"

#include "format/unpickle.h"

#include <string.h>
#include <strings.h>

static bool has_pickle_name(const char *name)
{
    static const char *const endings[] = {".pkl", ".pickle", ".p", ".pck", ".pcl"};
    const char *dot = strrchr(name, '.');
    for (size_t i = 0; dot && i < sizeof endings / sizeof *endings; i++)
        if (strcasecmp(dot, endings[i]) == 0)
            return true;
    return false;
}

/* Opcodes that push or mark: what a pickle can begin with. */
static bool begins_value(uint8_t opcode)
{
    static const char opcodes[] =
        "(]})NIJKMLFGSTUVXcBCP\x88\x89\x8a\x8b\x8c\x8d\x8e\x8f\x95\x96\x97\x82\x83\x84";
    return opcode && memchr(opcodes, opcode, sizeof opcodes - 1);
}

static bool probe(const struct td_source *source)
{
    const uint8_t *data = source->data;
    size_t size = source->size;
    if (size >= 4 && data[0] == 0x80 && data[1] >= 2 && data[1] <= 5 && begins_value(data[2]))
        return true;
    return size >= 2 && begins_value(data[0]) && data[size - 1] == '.' && has_pickle_name(source->name);
}

static tdbg_status open_source(const struct td_source *source, struct td_catalog *out,
                               struct tdbg_error *error)
{
    struct td_arena arena;
    struct td_pickle pickle;
    td_arena_init(&arena, TD_MAX_METADATA);
    tdbg_status status = td_pickle_parse(source->data, source->size, NULL, &arena, &pickle, error);
    if (status == TDBG_OK) {
        struct td_unpickle u = {.format = td_reader_pickle.name,
                                .catalog = out,
                                .bundle = source->bundle,
                                .data = source->data,
                                .size = pickle.consumed};
        status = td_unpickle_walk(&u, pickle.root, "", error);
    }
    if (status == TDBG_OK && pickle.consumed < source->size)
        status = td_catalog_skip(out, "", error, "%zu bytes after the pickle are not read",
                                 source->size - pickle.consumed);
    td_arena_release(&arena);
    return status;
}

const struct td_reader td_reader_pickle = {
    .name = "pickle", .probe = probe, .open = open_source, .keeps_order = true};
