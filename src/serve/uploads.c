/* uploads.c: see uploads.h. A name from the network is one component of a path, made harmless before it is
 * used; everything is done relative to the folder's descriptor, so that a folder that is moved away does not
 * mislead us. A large upload is written by a thread of its own, and read while it comes, for its hash and to
 * unpack it. */
#include "serve/uploads.h"

#include "base/job.h"
#include "base/utf8.h"
#include "io/write_all.h"
#include "serve/guard.h"
#include "serve/known_uploads.h"
#include "serve/unpacking.h"
#include "serve/writing.h"
#include "store/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { MAX_NAME = 200 };

/* What gathers before the disk is told to begin. */
enum { WRITE_STEP = 8 << 20 };

/* What an upload gathers before it is worth a thread that writes: everybody may have so much in memory. */
enum { FIRST_PIECE = 1 << 18 };

/* What is smaller than this is hashed and unpacked in no time once it is whole. */
enum { WORTH_READING = 1 << 20 };

/* So many are read at a time. What one unpacks to may take this part of what uploads may. */
enum { MOST_READ = 8, UNPACKED_SHARE = 2 * MOST_READ };

struct td_uploads {
    char *path;
    int folder, lock_file;
    struct td_store *store;
    uint64_t most_each, most_all;
    pthread_mutex_t lock;
    uint64_t used;     /* bytes of all uploads, those that still come too */
    uint64_t unpacked; /* bytes of what was unpacked; like other spilled bytes, no part of that budget */
    unsigned read;     /* while they come */
};

struct td_upload {
    struct td_uploads *uploads;
    char id[TD_UPLOAD_ID_LENGTH + 1];
    char name[MAX_NAME + 1], part[MAX_NAME + sizeof ".part"];
    int folder, file; /* -1: not there */
    uint64_t bytes;   /* that came: those in the file, those on their way, then those in the piece */
    uint64_t written; /* those in the file; this and `begun` are of the thread that writes */
    uint64_t begun;   /* what the disk was told to write */
    uint8_t *piece;   /* piece_room() bytes of room; NULL: nothing has gathered */
    size_t gathered;
    struct td_writing *writing; /* NULL: the connection writes */
    bool hashed;
    bool read;                      /* counts among those that are read while they come */
    struct td_hashing *hashing;     /* NULL: it is not */
    struct td_unpacking *unpacking; /* the same */
};

/* --- Sweeping ------------------------------------------------------------------------------------------- */

/* Uploads that no comparison uses are kept this long: whoever sent them may be about to compare them. */
enum { IDLE_SECONDS = 24 * 3600 };

static bool is_id(const char *text)
{
    return strlen(text) == TD_UPLOAD_ID_LENGTH && strspn(text, "0123456789abcdef") == TD_UPLOAD_ID_LENGTH;
}

/* FOLDER/ID and the files in it. What cannot be removed stays, and is tried again at the next start. */
static void remove_folder(int parent, const char *id)
{
    int fd = openat(parent, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *folder = fd >= 0 ? fdopendir(fd) : NULL;
    if (!folder) {
        if (fd >= 0)
            close(fd);
        return;
    }
    for (struct dirent *entry; (entry = readdir(folder));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            unlinkat(dirfd(folder), entry->d_name, 0);
    closedir(folder);
    unlinkat(parent, id, AT_REMOVEDIR);
}

static void remove_unpacked(int parent, const char *id)
{
    char path[TD_UPLOAD_ID_LENGTH + sizeof "/" TD_UNPACKED];
    snprintf(path, sizeof path, "%s/" TD_UNPACKED, id);
    unlinkat(parent, path, 0);
}

/* Removes the folders that nobody knows, and from the others what was unpacked. */
static tdbg_status sweep_folder(struct td_uploads *u, const struct td_known_uploads *known,
                                struct tdbg_error *error)
{
    int fd = openat(u->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *folder = fd >= 0 ? fdopendir(fd) : NULL;
    if (!folder) {
        tdbg_status status = td_fail_errno(error, "cannot list the uploads");
        if (fd >= 0)
            close(fd);
        return status;
    }
    for (struct dirent *entry; (entry = readdir(folder));)
        if (is_id(entry->d_name))
            (td_known_upload_find(known, entry->d_name) ? remove_unpacked : remove_folder)(u->folder,
                                                                                           entry->d_name);
    closedir(folder);
    return TDBG_OK;
}

static tdbg_status sweep(struct td_uploads *u, struct tdbg_error *error)
{
    struct td_known_uploads known;
    tdbg_status status = td_known_uploads_learn(&known, u->store, error);
    int64_t now = (int64_t)time(NULL);
    for (size_t i = 0; i < known.count && status == TDBG_OK; i++) {
        const struct td_known_upload *upload = &known.list[i];
        u->used += upload->bytes;
        if (!upload->used && now - upload->created > IDLE_SECONDS)
            status = td_uploads_remove(u, upload->id, error);
    }
    if (status == TDBG_OK)
        status = sweep_folder(u, &known, error);
    td_known_uploads_release(&known);
    return status;
}

/* --- The folder ----------------------------------------------------------------------------------------- */

static tdbg_status open_folder(struct td_uploads *u, struct tdbg_error *error)
{
    if (mkdir(u->path, 0700) != 0 && errno != EEXIST)
        return td_fail_errno(error, "cannot make the folder of uploads");
    u->folder = open(u->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (u->folder < 0)
        return td_fail_errno(error, "cannot open the folder of uploads");
    u->lock_file = openat(u->folder, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (u->lock_file < 0)
        return td_fail_errno(error, "cannot write to the folder of uploads");
    if (flock(u->lock_file, LOCK_EX | LOCK_NB) != 0)
        return errno == EWOULDBLOCK
                   ? td_fail(error, TDBG_IO, "another tdbg serve uses it (--data takes another folder)")
                   : td_fail_errno(error, "cannot lock the folder of uploads");
    return TDBG_OK;
}

tdbg_status td_uploads_open(struct td_uploads **out, const char *folder, struct td_store *store,
                            uint64_t most_each, uint64_t most_all, struct tdbg_error *error)
{
    struct td_uploads *u = calloc(1, sizeof *u);
    if (!u)
        return td_fail_nomem(error);
    *u = (struct td_uploads){.folder = -1,
                             .lock_file = -1,
                             .store = store,
                             .most_each = most_each,
                             .most_all = most_all,
                             .path = strdup(folder)};
    pthread_mutex_init(&u->lock, NULL);
    tdbg_status status = u->path ? open_folder(u, error) : td_fail_nomem(error);
    if (status == TDBG_OK)
        status = sweep(u, error);
    if (status == TDBG_OK)
        *out = u;
    else
        td_uploads_close(&u);
    return status;
}

void td_uploads_close(struct td_uploads **uploads)
{
    struct td_uploads *u = *uploads;
    if (!u)
        return;
    if (u->folder >= 0)
        close(u->folder);
    if (u->lock_file >= 0)
        close(u->lock_file);
    pthread_mutex_destroy(&u->lock);
    free(u->path);
    free(u);
    *uploads = NULL;
}

const char *td_uploads_folder(const struct td_uploads *uploads)
{
    return uploads->path;
}

/* Takes `bytes` of the budget. */
static bool charge(struct td_uploads *u, uint64_t bytes)
{
    pthread_mutex_lock(&u->lock);
    bool room = bytes <= u->most_all && u->used <= u->most_all - bytes;
    if (room)
        u->used += bytes;
    pthread_mutex_unlock(&u->lock);
    return room;
}

/* --- Reading what arrives ------------------------------------------------------------------------------- */

/* The file has grown; who reads it, and the disk, are told. */
static void note_written(void *context, uint64_t size)
{
    struct td_upload *upload = context;
    upload->written = size;
    if (upload->hashing)
        td_hashing_more(upload->hashing, size);
    if (upload->unpacking)
        td_unpacking_more(upload->unpacking, size);
    if (size - upload->begun >= WRITE_STEP) {
        (void)!sync_file_range(upload->file, (off_t)upload->begun, (off_t)(size - upload->begun),
                               SYNC_FILE_RANGE_WRITE); /* only a hint; settle() waits */
        upload->begun = size;
    }
}

static void begin_reading(struct td_upload *upload)
{
    struct td_uploads *u = upload->uploads;
    pthread_mutex_lock(&u->lock);
    upload->read = u->read < MOST_READ;
    u->read += upload->read;
    pthread_mutex_unlock(&u->lock);
    if (!upload->read)
        return;
    upload->hashing = upload->hashed ? td_hashing_start(upload->file, upload->written) : NULL;
    upload->unpacking =
        td_unpacking_start(upload->folder, upload->file, u->most_each, u->most_all / UNPACKED_SHARE);
    upload->writing = td_writing_start(upload->file, upload->written, note_written, upload);
}

static void end_reading(struct td_upload *upload)
{
    struct td_uploads *u = upload->uploads;
    pthread_mutex_lock(&u->lock);
    u->read -= upload->read;
    pthread_mutex_unlock(&u->lock);
    upload->read = false;
}

/* What was unpacked is kept when the upload is whole, up to half as much as uploads may take. */
static void end_unpacking(struct td_upload *upload, bool whole)
{
    struct td_uploads *u = upload->uploads;
    if (!upload->unpacking)
        return;
    uint64_t size = td_unpacking_end(&upload->unpacking, whole);
    pthread_mutex_lock(&u->lock);
    bool room = u->unpacked <= u->most_all / 2 && size <= u->most_all / 2 - u->unpacked;
    if (room)
        u->unpacked += size;
    pthread_mutex_unlock(&u->lock);
    if (!room)
        remove_unpacked(u->folder, upload->id);
}

/* Of an upload that is whole; stays "" when nobody wants to know. */
static tdbg_status take_hash(struct td_upload *upload, char sha256[TD_SHA256_LENGTH + 1],
                             struct tdbg_error *error)
{
    if (!upload->hashed)
        return TDBG_OK;
    return upload->hashing ? td_hashing_finish(&upload->hashing, sha256, error)
                           : td_hash_file(upload->file, upload->bytes, sha256, error);
}

/* The upload and what it unpacks to go, and no longer count. */
static void forget(struct td_uploads *u, const char *id, uint64_t bytes)
{
    char path[TD_UPLOAD_ID_LENGTH + sizeof "/" TD_UNPACKED];
    struct stat info;
    snprintf(path, sizeof path, "%s/" TD_UNPACKED, id);
    bool unpacked = fstatat(u->folder, path, &info, AT_SYMLINK_NOFOLLOW) == 0;
    remove_folder(u->folder, id);
    pthread_mutex_lock(&u->lock);
    u->used -= bytes < u->used ? bytes : u->used;
    if (unpacked)
        u->unpacked -= (uint64_t)info.st_size < u->unpacked ? (uint64_t)info.st_size : u->unpacked;
    pthread_mutex_unlock(&u->lock);
}

/* --- One upload ----------------------------------------------------------------------------------------- */

/* One component of a path that every file system takes: no folders, nothing hidden, no control codes. */
static void clean_name(char out[MAX_NAME + 1], const char *name)
{
    for (const char *c = name; *c; c++)
        if (*c == '/' || *c == '\\')
            name = c + 1;
    size_t length = strlen(name);
    const char *cut = length > MAX_NAME ? name + length - MAX_NAME : name; /* its end tells the format */
    while ((*cut & 0xc0) == 0x80)
        cut++;
    snprintf(out, MAX_NAME + 1, "%s", *cut ? cut : "upload");
    td_utf8_clean(out);
    if (out[0] == '.')
        out[0] = '_';
}

static tdbg_status fail_space(struct tdbg_error *error, const char *what)
{
    if (errno == ENOSPC || errno == EDQUOT)
        return td_fail(error, TDBG_IO, "no space left in the data folder");
    return td_fail_errno(error, what);
}

tdbg_status td_upload_begin(struct td_upload **out, struct td_uploads *uploads, const char *name, bool hashed,
                            struct tdbg_error *error)
{
    struct td_upload *upload = calloc(1, sizeof *upload);
    if (!upload)
        return td_fail_nomem(error);
    upload->uploads = uploads;
    upload->hashed = hashed;
    upload->folder = upload->file = -1;
    clean_name(upload->name, name);
    snprintf(upload->part, sizeof upload->part, "%s.part", upload->name);
    tdbg_status status = TDBG_OK;
    if (!td_guard_random(upload->id, TD_UPLOAD_ID_LENGTH))
        status = td_fail(error, TDBG_IO, "the system has no random numbers");
    else if (mkdirat(uploads->folder, upload->id, 0700) != 0)
        status = fail_space(error, "cannot make a folder for the upload");
    if (status != TDBG_OK) {
        free(upload);
        return status;
    }
    upload->folder = openat(uploads->folder, upload->id, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (upload->folder >= 0)
        upload->file =
            openat(upload->folder, upload->part, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (upload->file < 0) {
        status = fail_space(error, "cannot make a file for the upload");
        td_upload_abandon(&upload);
        return status;
    }
    *out = upload;
    return TDBG_OK;
}

static size_t piece_room(const struct td_upload *upload)
{
    return upload->writing ? TD_WRITING_PIECE : FIRST_PIECE;
}

/* The piece is full, and there is no thread yet that writes. From the next one on there may be. */
static int write_piece(struct td_upload *upload)
{
    uint64_t before = upload->written;
    int trouble = td_write_all(upload->file, upload->piece, FIRST_PIECE);
    if (trouble)
        return trouble;
    note_written(upload, before + FIRST_PIECE);
    if (before < WORTH_READING && upload->written >= WORTH_READING)
        begin_reading(upload);
    if (upload->writing) {
        free(upload->piece);
        upload->piece = malloc(TD_WRITING_PIECE);
    }
    return upload->piece ? 0 : ENOMEM;
}

static tdbg_status pass_on(struct td_upload *upload, struct tdbg_error *error)
{
    errno = upload->writing ? td_writing_take(upload->writing, &upload->piece) : write_piece(upload);
    if (errno)
        return fail_space(error, "cannot write the upload");
    upload->gathered = 0;
    return TDBG_OK;
}

tdbg_status td_upload_write(struct td_upload *upload, const void *bytes, size_t size,
                            struct tdbg_error *error)
{
    struct td_uploads *u = upload->uploads;
    if (size > u->most_each || upload->bytes > u->most_each - size)
        return td_fail(error, TDBG_LIMIT, "the file is larger than %" PRIu64 " bytes (--limit-upload)",
                       u->most_each);
    if (!charge(u, size))
        return td_fail(error, TDBG_IO,
                       "the uploads fill their budget of %" PRIu64 " bytes; remove comparisons that are no "
                       "longer needed",
                       u->most_all);
    upload->bytes += size; /* charged, whatever becomes of it */
    if (!upload->piece && !(upload->piece = malloc(piece_room(upload))))
        return td_fail_nomem(error);
    for (const char *at = bytes; size > 0;) {
        size_t room = piece_room(upload) - upload->gathered, part = size < room ? size : room;
        memcpy(upload->piece + upload->gathered, at, part);
        upload->gathered += part;
        at += part;
        size -= part;
        if (upload->gathered == piece_room(upload))
            TD_TRY(pass_on(upload, error));
    }
    return TDBG_OK;
}

tdbg_status td_upload_flush(struct td_upload *upload, struct tdbg_error *error)
{
    errno = upload->writing ? td_writing_end(&upload->writing) : 0;
    if (!errno)
        errno = td_write_all(upload->file, upload->piece, upload->gathered);
    if (errno)
        return fail_space(error, "cannot write the upload");
    note_written(upload, upload->written + upload->gathered);
    if (upload->unpacking)
        td_unpacking_all(upload->unpacking); /* before anybody waits for the disk */
    upload->gathered = 0;
    free(upload->piece);
    upload->piece = NULL;
    return TDBG_OK;
}

/* Made to last: the bytes, then the name, then both folders. */
static tdbg_status settle(struct td_upload *upload, struct tdbg_error *error)
{
    TD_TRY(td_upload_flush(upload, error));
    if (fsync(upload->file) != 0 ||
        renameat(upload->folder, upload->part, upload->folder, upload->name) != 0 ||
        fsync(upload->folder) != 0 || fsync(upload->uploads->folder) != 0)
        return fail_space(error, "cannot write the upload");
    return TDBG_OK;
}

static tdbg_status describe(struct td_uploaded *out, const struct td_uploads *u,
                            const struct td_upload_row *row, struct tdbg_error *error)
{
    struct td_uploaded found = {.bytes = row->bytes, .name = strdup(row->name)};
    snprintf(found.id, sizeof found.id, "%s", row->id);
    snprintf(found.sha256, sizeof found.sha256, "%s", row->sha256);
    if (!found.name || asprintf(&found.path, "%s/%s/%s", u->path, found.id, found.name) < 0) {
        free(found.name);
        return td_fail_nomem(error);
    }
    *out = found;
    return TDBG_OK;
}

tdbg_status td_upload_finish(struct td_upload **slot, struct td_uploaded *out, struct tdbg_error *error)
{
    struct td_upload *upload = *slot;
    struct td_uploads *u = upload->uploads;
    char sha256[TD_SHA256_LENGTH + 1] = "";
    const struct td_upload_row row = {.id = upload->id,
                                      .name = upload->name,
                                      .sha256 = sha256,
                                      .bytes = upload->bytes,
                                      .created = (int64_t)time(NULL)};
    struct td_uploaded done = {0};
    tdbg_status status = settle(upload, error);
    if (status == TDBG_OK)
        status = take_hash(upload, sha256, error);
    end_unpacking(upload, status == TDBG_OK);
    if (status == TDBG_OK)
        status = describe(&done, u, &row, error);
    if (status == TDBG_OK)
        status = td_store_add_upload(u->store, &row, error);
    if (status != TDBG_OK) {
        td_uploaded_release(&done);
        td_upload_abandon(slot);
        return status;
    }
    end_reading(upload);
    close(upload->file);
    close(upload->folder);
    free(upload);
    *slot = NULL;
    *out = done;
    return TDBG_OK;
}

void td_upload_abandon(struct td_upload **slot)
{
    struct td_upload *upload = *slot;
    if (!upload)
        return;
    if (upload->writing)
        (void)td_writing_end(&upload->writing);
    td_hashing_abandon(&upload->hashing);
    end_unpacking(upload, false);
    end_reading(upload);
    if (upload->file >= 0)
        close(upload->file);
    if (upload->folder >= 0)
        close(upload->folder);
    forget(upload->uploads, upload->id, upload->bytes);
    free(upload->piece);
    free(upload);
    *slot = NULL;
}

/* --- Finished ones -------------------------------------------------------------------------------------- */

struct search {
    const struct td_uploads *uploads;
    const char *id;
    struct td_uploaded *out;
    struct tdbg_error *error;
    tdbg_status status;
};

static void look_at_row(void *context, const struct td_upload_row *row)
{
    struct search *s = context;
    if (s->status == TDBG_NOTFOUND && strcmp(row->id, s->id) == 0)
        s->status = describe(s->out, s->uploads, row, s->error);
}

tdbg_status td_uploads_find(struct td_uploads *uploads, const char *id, struct td_uploaded *out,
                            struct tdbg_error *error)
{
    struct search search = {uploads, id, out, error, TDBG_NOTFOUND};
    TD_TRY(td_store_each_upload(uploads->store, look_at_row, &search, error));
    if (search.status == TDBG_NOTFOUND)
        return td_fail(error, TDBG_NOTFOUND, "there is no upload %.32s", id);
    return search.status;
}

void td_uploaded_release(struct td_uploaded *uploaded)
{
    free(uploaded->name);
    free(uploaded->path);
    *uploaded = (struct td_uploaded){0};
}

tdbg_status td_uploads_remove(struct td_uploads *uploads, const char *id, struct tdbg_error *error)
{
    struct td_uploaded found;
    TD_TRY(td_uploads_find(uploads, id, &found, error));
    tdbg_status status = td_store_remove_upload(uploads->store, id, error);
    if (status == TDBG_OK)
        forget(uploads, found.id, found.bytes);
    td_uploaded_release(&found);
    return status;
}
