/* known_uploads.c: see known_uploads.h. */
#include "serve/known_uploads.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void note_upload(void *context, const struct td_upload_row *row)
{
    struct td_known_uploads *k = context;
    if (k->count == k->room) {
        size_t room = k->room ? k->room * 2 : 64;
        void *grown = realloc(k->list, room * sizeof *k->list);
        if (!grown) {
            k->failed = true;
            return;
        }
        k->list = grown;
        k->room = room;
    }
    struct td_known_upload *upload = &k->list[k->count++];
    *upload = (struct td_known_upload){.bytes = row->bytes, .created = row->created};
    snprintf(upload->id, sizeof upload->id, "%s", row->id);
}

static int compare_ids(const void *a, const void *b)
{
    return strcmp(a, b);
}

struct td_known_upload *td_known_upload_find(const struct td_known_uploads *k, const char *id)
{
    return k->count ? bsearch(id, k->list, k->count, sizeof *k->list, compare_ids) : NULL;
}

static void note_use(void *context, const struct td_comparison_row *row)
{
    const char *ids[] = {row->a.upload, row->b.upload};
    for (size_t i = 0; i < 2; i++) {
        struct td_known_upload *upload = ids[i] ? td_known_upload_find(context, ids[i]) : NULL;
        if (upload)
            upload->used = true;
    }
}

tdbg_status td_known_uploads_learn(struct td_known_uploads *k, struct td_store *store,
                                   struct tdbg_error *error)
{
    *k = (struct td_known_uploads){0};
    TD_TRY(td_store_each_upload(store, note_upload, k, error));
    if (k->failed)
        return td_fail_nomem(error);
    if (k->count > 0)
        qsort(k->list, k->count, sizeof *k->list, compare_ids);
    return td_store_each_comparison(store, note_use, k, error);
}

void td_known_uploads_release(struct td_known_uploads *k)
{
    free(k->list);
    *k = (struct td_known_uploads){0};
}
