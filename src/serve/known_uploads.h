/* known_uploads.h: the uploads that the store knows, when a server starts: what else lies in their folder
 * goes.
 */
#ifndef TD_SERVE_KNOWN_UPLOADS_H
#define TD_SERVE_KNOWN_UPLOADS_H

#include "serve/uploads.h"
#include "store/store.h"

struct td_known_upload {
    char id[TD_UPLOAD_ID_LENGTH + 1]; /* first: they are sorted by it */
    uint64_t bytes;
    int64_t created;
    bool used; /* by a comparison */
};

struct td_known_uploads {
    struct td_known_upload *list;
    size_t count, room;
    bool failed; /* no memory */
};

/* To be released in any case. */
TD_CHECK tdbg_status td_known_uploads_learn(struct td_known_uploads *known, struct td_store *store,
                                            struct tdbg_error *error);
void td_known_uploads_release(struct td_known_uploads *known);

/* NULL: nobody knows it. */
struct td_known_upload *td_known_upload_find(const struct td_known_uploads *known, const char *id);

#endif
