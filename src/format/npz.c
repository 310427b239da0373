/* npz.c: reads .npz: a zip whose members are .npy arrays, each named KEY.npy.
 *
 * np.savez stores members, which are viewed in place; np.savez_compressed deflates them, and they are
 * unpacked into the bundle's scratch space. A member that cannot be read is skipped by name.
 *
 * A zip of .npy files named .zip is somebody's folder of dumps, not an .npz: it is left to the archive code,
 * which keeps the file names.
 */
#include "format/npy.h"
#include "format/reader.h"
#include "io/zip.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

static bool ends_with(const char *name, const char *tail)
{
    size_t length = strlen(name), need = strlen(tail);
    return length >= need && !strcasecmp(name + length - need, tail);
}

static bool probe(const struct td_source *source)
{
    if (!td_zip_probe(source->data, source->size) || ends_with(source->name, ".zip"))
        return false;
    struct td_zip zip;
    if (td_zip_open(&zip, source->data, source->size, NULL) != TDBG_OK)
        return ends_with(source->name, ".npz"); /* so that the trouble gets reported */
    bool all = zip.count > 0 || ends_with(source->name, ".npz");
    for (size_t i = 0; all && i < zip.count; i++)
        all = ends_with(zip.members[i].name, ".npy");
    td_zip_release(&zip);
    return all;
}

/* `data`: the member inflated, or NULL: not yet. */
static tdbg_status read_member(const struct td_zip *zip, const struct td_zip_member *member,
                               const uint8_t *data, struct td_bundle *bundle, struct td_catalog *out,
                               struct tdbg_error *error)
{
    struct tdbg_error why;
    char *key = td_arena_strndup(&out->arena, member->name, strlen(member->name) - strlen(".npy"));
    if (!key)
        return td_fail_nomem(error);
    tdbg_status status = data ? TDBG_OK : td_zip_read(zip, member, bundle, &data, &why);
    if (status == TDBG_OK)
        status = td_npy_read(out, key, td_reader_npz.name, data, (size_t)member->size, &why);
    if (status == TDBG_OK)
        return TDBG_OK;
    return td_catalog_skip(out, key, error, "%s", why.message);
}

static tdbg_status read_members(const struct td_zip *zip, struct td_bundle *bundle, struct td_catalog *out,
                                struct tdbg_error *error)
{
    const struct td_zip_member **members = calloc(zip->count + 1, sizeof *members);
    const uint8_t **data = calloc(zip->count + 1, sizeof *data);
    tdbg_status status = members && data ? TDBG_OK : td_fail_nomem(error);
    if (status == TDBG_OK) {
        for (size_t i = 0; i < zip->count; i++)
            members[i] = &zip->members[i];
        td_zip_inflate(zip, members, zip->count, bundle, NULL, data);
    }
    for (size_t i = 0; status == TDBG_OK && i < zip->count; i++)
        status = read_member(zip, members[i], data[i], bundle, out, error);
    free(data);
    free(members);
    return status;
}

static tdbg_status open_source(const struct td_source *source, struct td_catalog *out,
                               struct tdbg_error *error)
{
    struct td_zip zip;
    TD_TRY(td_zip_open(&zip, source->data, source->size, error));
    tdbg_status status = read_members(&zip, source->bundle, out, error);
    td_zip_release(&zip);
    return status;
}

const struct td_reader td_reader_npz = {
    .name = "npz", .probe = probe, .open = open_source, .keeps_order = true};
