/* hashing.c: see hashing.h. The hash is the thread's until it is joined. */
#include "serve/hashing.h"

#include "serve/arrival.h"

#include <errno.h>
#include <nettle/base16.h>
#include <nettle/sha2.h>
#include <stdlib.h>
#include <unistd.h>

struct td_hashing {
    struct td_file_arrival arrival;
    int file;
    pthread_t thread;
    struct sha256_ctx hash;
    tdbg_status status;
    struct tdbg_error error;
};

/* Adds the bytes from..to of the file. The piece stays in the cache between the read and the hash. */
static tdbg_status add_part(struct sha256_ctx *hash, int file, uint64_t from, uint64_t to,
                            struct tdbg_error *error)
{
    uint8_t piece[32 << 10];
    while (from < to) {
        size_t room = to - from < sizeof piece ? (size_t)(to - from) : sizeof piece;
        ssize_t got = pread(file, piece, room, (off_t)from);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return td_fail_errno(error, "cannot read the upload");
        if (got == 0)
            return td_fail(error, TDBG_IO, "the upload was cut while it came");
        sha256_update(hash, (size_t)got, piece);
        from += (uint64_t)got;
    }
    return TDBG_OK;
}

static void print_hash(struct sha256_ctx *hash, char out[TD_SHA256_LENGTH + 1])
{
    uint8_t digest[SHA256_DIGEST_SIZE];
    sha256_digest(hash, sizeof digest, digest);
    base16_encode_update(out, sizeof digest, digest);
    out[TD_SHA256_LENGTH] = 0;
}

static void *hash_arriving(void *context)
{
    struct td_hashing *h = context;
    uint64_t known = 0, size;
    while (h->status == TDBG_OK && (size = td_file_arrival_wait(&h->arrival, known)) > known) {
        h->status = add_part(&h->hash, h->file, known, size, &h->error);
        known = size;
    }
    return NULL;
}

struct td_hashing *td_hashing_start(int file, uint64_t size)
{
    struct td_hashing *h = calloc(1, sizeof *h);
    if (!h)
        return NULL;
    h->file = file;
    td_file_arrival_init(&h->arrival, size);
    sha256_init(&h->hash);
    if (pthread_create(&h->thread, NULL, hash_arriving, h) == 0)
        return h;
    td_file_arrival_release(&h->arrival);
    free(h);
    return NULL;
}

void td_hashing_more(struct td_hashing *h, uint64_t size)
{
    td_file_arrival_more(&h->arrival, size);
}

static void end(struct td_hashing **slot, bool stop)
{
    struct td_hashing *h = *slot;
    td_file_arrival_end(&h->arrival, stop);
    pthread_join(h->thread, NULL);
    td_file_arrival_release(&h->arrival);
}

tdbg_status td_hashing_finish(struct td_hashing **slot, char sha256[TD_SHA256_LENGTH + 1],
                              struct tdbg_error *error)
{
    struct td_hashing *h = *slot;
    end(slot, false);
    tdbg_status status = h->status;
    if (status == TDBG_OK)
        print_hash(&h->hash, sha256);
    else if (error)
        *error = h->error;
    free(h);
    *slot = NULL;
    return status;
}

void td_hashing_abandon(struct td_hashing **slot)
{
    if (!*slot)
        return;
    end(slot, true);
    free(*slot);
    *slot = NULL;
}

tdbg_status td_hash_file(int file, uint64_t size, char sha256[TD_SHA256_LENGTH + 1], struct tdbg_error *error)
{
    struct sha256_ctx hash;
    sha256_init(&hash);
    TD_TRY(add_part(&hash, file, 0, size, error));
    print_hash(&hash, sha256);
    return TDBG_OK;
}
