/* uploads.h: files that came over the network, in a folder of their own, with a budget.
 *
 *     FOLDER/ID/NAME          a finished upload; ID is ours, NAME the client's, cleaned
 *     FOLDER/ID/NAME.part     one that still comes
 *     FOLDER/ID/.unpacked     what a gzip unpacks to, made while it came (unpacking.h)
 *     FOLDER/lock             held by the one server that uses the folder
 *
 * An upload exists when the store says so, which it does after the file was synced and renamed. Writing to
 * the disk begins while the upload comes, so that little is left to wait for at its end. What else lies in
 * the folder at start was left by a process that died, and is swept away; so is an upload that after a day no
 * comparison uses. What was unpacked is only saved work: it is never synced, goes at the next start, and
 * takes up to half of what uploads may besides.
 */
#ifndef TD_SERVE_UPLOADS_H
#define TD_SERVE_UPLOADS_H

#include "base/status.h"
#include "serve/hashing.h"

struct td_uploads;
struct td_store;
struct td_upload; /* one that still comes */

/* Makes the folder. IO when another server uses it, or it cannot be written to. */
TD_CHECK tdbg_status td_uploads_open(struct td_uploads **out, const char *folder, struct td_store *store,
                                     uint64_t most_each, uint64_t most_all, struct tdbg_error *error);
void td_uploads_close(struct td_uploads **uploads);

/* Where they are: what a job may be told (prepared, job.h). */
const char *td_uploads_folder(const struct td_uploads *uploads);

/* `hashed`: somebody wants to know its SHA-256. */
TD_CHECK tdbg_status td_upload_begin(struct td_upload **out, struct td_uploads *uploads, const char *name,
                                     bool hashed, struct tdbg_error *error);

/* LIMIT: the file is larger than one may be. IO: there is no room left, on the disk or in the budget. */
TD_CHECK tdbg_status td_upload_write(struct td_upload *upload, const void *bytes, size_t size,
                                     struct tdbg_error *error);

/* All has come: what has gathered is written, and its memory given back. It is not finished yet. */
TD_CHECK tdbg_status td_upload_flush(struct td_upload *upload, struct tdbg_error *error);

enum { TD_UPLOAD_ID_LENGTH = 16 }; /* hexadecimal digits */

/* What a finished upload is; freed as a whole. */
struct td_uploaded {
    char id[TD_UPLOAD_ID_LENGTH + 1], sha256[TD_SHA256_LENGTH + 1]; /* "": it was not hashed */
    uint64_t bytes;
    char *name, *path;
};

/* Both end the upload, whatever they return. */
TD_CHECK tdbg_status td_upload_finish(struct td_upload **upload, struct td_uploaded *out,
                                      struct tdbg_error *error);
void td_upload_abandon(struct td_upload **upload);

/* NOTFOUND when there is none of that id. */
TD_CHECK tdbg_status td_uploads_find(struct td_uploads *uploads, const char *id, struct td_uploaded *out,
                                     struct tdbg_error *error);
void td_uploaded_release(struct td_uploaded *uploaded);

TD_CHECK tdbg_status td_uploads_remove(struct td_uploads *uploads, const char *id, struct tdbg_error *error);

#endif
