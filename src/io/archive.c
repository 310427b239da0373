/* archive.c: looking into archives: recognises the container by its content and lists its members. */
#include "io/bundle.h"
#include "io/path.h"

#include <string.h>

bool td_bundle_probe(const struct td_source *source)
{
    return td_zip_probe(source->data, source->size);
}

static tdbg_status list_zip(struct td_bundle *bundle, const struct td_source *source,
                            struct tdbg_error *error)
{
    TD_TRY(td_zip_open(&bundle->zip, source->data, source->size, error));
    for (size_t i = 0; i < bundle->zip.count; i++) {
        const struct td_zip_member *zipped = &bundle->zip.members[i];
        const char *name = td_path_clean(&bundle->arena, zipped->name, strlen(zipped->name));
        if (!name)
            return td_fail_nomem(error);
        if (td_path_hidden(name))
            continue;
        struct td_member member = {.name = name, .kind = TD_MEMBER_ZIPPED, .zipped = zipped};
        TD_TRY(td_bundle_add(bundle, member, error));
    }
    return TDBG_OK;
}

tdbg_status td_bundle_open_archive(struct td_bundle **out, const struct td_source *source, struct td_job *job,
                                   struct tdbg_error *error)
{
    (void)job;
    struct td_bundle *bundle = NULL;
    TD_TRY(td_bundle_make(&bundle, source->bundle, error));
    tdbg_status status = list_zip(bundle, source, error);
    if (status == TDBG_OK)
        *out = bundle;
    else
        td_bundle_close(&bundle);
    return status;
}
