/* run_rows.c: reading the index of a run.
 *
 * The file may come from anywhere: what a row claims is checked here, once, before a visitor sees it. Scopes
 * are numbered without gaps and point back; spans and blocks name a scope that exists and are as many as
 * their bytes; shapes are numbers; text is text. Little-endian records are read as they lie, which every
 * machine tdbg runs on does.
 */
#include "store/run_connection.h"

#include "base/arena.h"
#include "base/limits.h"
#include "base/utf8.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The rows of a query beyond `after`. */
struct walk {
    struct td_run_store *store;
    sqlite3_stmt *rows;
    int code;
    struct td_arena arena; /* of text that had to be cleaned */
};

static tdbg_status walk_init(struct walk *w, struct td_run_store *store, enum td_run_query query,
                             int64_t after, struct tdbg_error *error)
{
    w->store = store;
    TD_TRY(td_run_statement(store, query, &w->rows, error));
    sqlite3_bind_int64(w->rows, 1, after);
    td_arena_init(&w->arena, TD_MAX_METADATA);
    return TDBG_OK;
}

static bool walk_on(struct walk *w)
{
    return (w->code = sqlite3_step(w->rows)) == SQLITE_ROW;
}

/* `status`, unless the walk ended because SQLite failed. */
static tdbg_status walk_end(struct walk *w, tdbg_status status, struct tdbg_error *error)
{
    if (status == TDBG_OK && w->code != SQLITE_DONE && w->code != SQLITE_ROW)
        status = td_sqlite_fail(w->store->db, w->code, error);
    td_sqlite_end(w->rows);
    td_arena_release(&w->arena);
    return status;
}

static int64_t number(const struct walk *w, int column)
{
    return sqlite3_column_int64(w->rows, column);
}

/* NULL stands for NaN. */
static double real(const struct walk *w, int column)
{
    return sqlite3_column_type(w->rows, column) == SQLITE_NULL ? (double)NAN
                                                               : sqlite3_column_double(w->rows, column);
}

static const char *raw_text(const struct walk *w, int column)
{
    const char *t = (const char *)sqlite3_column_text(w->rows, column);
    return t ? t : "";
}

/* Of one line, and with nothing in it that a terminal would obey: a program may call its scopes anything. */
static const char *text(struct walk *w, int column)
{
    const char *t = raw_text(w, column);
    if (td_utf8_is_clean(t))
        return t;
    char *clean = td_arena_strdup(&w->arena, t);
    if (clean)
        td_utf8_clean(clean);
    return clean ? clean : "?";
}

void td_run_fact_set(char *out, size_t size, const char *value)
{
    size_t length = strnlen(value, size - 1);
    memcpy(out, value, length);
    out[length] = 0;
}

/* --- rows ----------------------------------------------------------------------------------------------- */

tdbg_status td_run_facts(struct td_run_store *store, struct td_run_facts *out, struct tdbg_error *error)
{
    struct td_run_facts f = {.world = 1};
    struct walk w;
    TD_TRY(walk_init(&w, store, TD_RUN_FACTS, -1, error));
    while (walk_on(&w)) {
        const char *name = text(&w, 0);
        if (strcmp(name, "program") == 0)
            td_run_fact_set(f.program, sizeof f.program, text(&w, 1));
        else if (strcmp(name, "host") == 0)
            td_run_fact_set(f.host, sizeof f.host, text(&w, 1));
        else if (strcmp(name, "capture") == 0)
            td_run_fact_set(f.capture, sizeof f.capture, raw_text(&w, 1)); /* rules may be lines */
        else if (strcmp(name, "started") == 0)
            f.started = number(&w, 1);
        else if (strcmp(name, "ended_ns") == 0)
            f.ended_ns = number(&w, 1);
        else if (strcmp(name, "pid") == 0)
            f.pid = number(&w, 1);
        else if (strcmp(name, "rank") == 0)
            f.rank = sqlite3_column_int(w.rows, 1);
        else if (strcmp(name, "world") == 0)
            f.world = sqlite3_column_int(w.rows, 1);
    }
    TD_TRY(walk_end(&w, TDBG_OK, error));
    *out = f;
    return TDBG_OK;
}

tdbg_status td_run_each_step(struct td_run_store *store, int64_t after,
                             bool (*visit)(void *context, const struct td_run_step *row), void *context,
                             struct tdbg_error *error)
{
    struct walk w;
    TD_TRY(walk_init(&w, store, TD_RUN_STEPS, after, error));
    while (walk_on(&w))
        if (!visit(context, &(struct td_run_step){number(&w, 0), number(&w, 1), number(&w, 2), number(&w, 3),
                                                  number(&w, 4), number(&w, 5)}))
            break;
    return walk_end(&w, TDBG_OK, error);
}

tdbg_status td_run_each_scope(struct td_run_store *store, int64_t after,
                              bool (*visit)(void *context, const struct td_run_scope *row), void *context,
                              struct tdbg_error *error)
{
    struct walk w;
    tdbg_status status = TDBG_OK;
    int64_t expected = after < 0 ? 1 : after + 1;
    TD_TRY(walk_init(&w, store, TD_RUN_SCOPES, after, error));
    for (; walk_on(&w); expected++) {
        int64_t id = number(&w, 0), parent = number(&w, 1);
        if (id != expected || id > TD_MAX_SCOPES || parent < 0 || parent >= id) {
            status = td_fail(error, TDBG_CORRUPT, "scope %lld of parent %lld after scope %lld", (long long)id,
                             (long long)parent, (long long)expected - 1);
            break;
        }
        if (!visit(context, &(struct td_run_scope){(uint32_t)id, (uint32_t)parent, text(&w, 2)}))
            break;
    }
    return walk_end(&w, status, error);
}

static tdbg_status read_shape(struct td_run_tensor *out, const char *from, struct tdbg_error *error)
{
    const char *at = from;
    out->ndim = 0;
    while (*at) {
        char *end;
        long long size = strtoll(at, &end, 10);
        if (end == at || (*end && *end != ',') || size < 0 || out->ndim == TDBG_MAX_DIMS)
            return td_fail(error, TDBG_CORRUPT, "tensor %s has the shape \"%.40s\"", out->name, from);
        out->shape[out->ndim++] = size;
        at = *end ? end + 1 : end;
    }
    return TDBG_OK;
}

static tdbg_status read_tensor(struct walk *w, struct td_run_tensor *out, uint64_t *bins,
                               struct tdbg_error *error)
{
    *out = (struct td_run_tensor){.id = number(w, 0),
                                  .step = number(w, 1),
                                  .name = text(w, 2),
                                  .scope = (uint32_t)number(w, 3),
                                  .thread = (uint32_t)number(w, 4),
                                  .time_ns = number(w, 5),
                                  .dtype = text(w, 6),
                                  .file = (const char *)sqlite3_column_text(w->rows, 9),
                                  .stats = {.count = (uint64_t)number(w, 10),
                                            .finite = (uint64_t)number(w, 11),
                                            .nan = (uint64_t)number(w, 12),
                                            .inf = (uint64_t)number(w, 13),
                                            .zeros = (uint64_t)number(w, 14),
                                            .mean = real(w, 15),
                                            .std = real(w, 16),
                                            .min = real(w, 17),
                                            .max = real(w, 18),
                                            .absmax = real(w, 19),
                                            .norm = real(w, 20)}};
    int64_t kind = number(w, 8);
    if (kind <= TD_KEEP_NONE || kind > TD_KEEP_SLICE)
        return td_fail(error, TDBG_CORRUPT, "tensor %s is kept in an unknown way (%lld)", out->name,
                       (long long)kind);
    out->kind = (enum td_keep)kind;
    if (sqlite3_column_bytes(w->rows, 21) == (int)(TD_SKETCH_BINS * sizeof *bins)) {
        memcpy(bins, sqlite3_column_blob(w->rows, 21), TD_SKETCH_BINS * sizeof *bins);
        out->bins = bins;
    }
    return read_shape(out, text(w, 7), error);
}

tdbg_status td_run_each_tensor(struct td_run_store *store, int64_t after,
                               bool (*visit)(void *context, const struct td_run_tensor *row), void *context,
                               struct tdbg_error *error)
{
    struct walk w;
    tdbg_status status = TDBG_OK;
    TD_TRY(walk_init(&w, store, TD_RUN_TENSORS, after, error));
    while (walk_on(&w)) {
        struct td_run_tensor row;
        uint64_t bins[TD_SKETCH_BINS];
        status = read_tensor(&w, &row, bins, error);
        if (status != TDBG_OK || !visit(context, &row))
            break;
    }
    return walk_end(&w, status, error);
}

tdbg_status td_run_each_scalar(struct td_run_store *store, int64_t after,
                               bool (*visit)(void *context, const struct td_run_scalar *row), void *context,
                               struct tdbg_error *error)
{
    struct walk w;
    TD_TRY(walk_init(&w, store, TD_RUN_SCALARS, after, error));
    while (walk_on(&w))
        if (!visit(context, &(struct td_run_scalar){.id = number(&w, 0),
                                                    .name = text(&w, 1),
                                                    .step = number(&w, 2),
                                                    .time_ns = number(&w, 3),
                                                    .value = real(&w, 4)}))
            break;
    return walk_end(&w, TDBG_OK, error);
}

tdbg_status td_run_each_snapshot(struct td_run_store *store, int64_t after,
                                 bool (*visit)(void *context, const struct td_run_snapshot *row),
                                 void *context, struct tdbg_error *error)
{
    struct walk w;
    TD_TRY(walk_init(&w, store, TD_RUN_SNAPSHOTS, after, error));
    while (walk_on(&w))
        if (!visit(context, &(struct td_run_snapshot){text(&w, 1), number(&w, 2), number(&w, 3)}))
            break;
    return walk_end(&w, TDBG_OK, error);
}

tdbg_status td_run_each_note(struct td_run_store *store, int64_t after,
                             bool (*visit)(void *context, const struct td_run_note *row), void *context,
                             struct tdbg_error *error)
{
    struct walk w;
    TD_TRY(walk_init(&w, store, TD_RUN_NOTES, after, error));
    while (walk_on(&w))
        if (!visit(context, &(struct td_run_note){.id = number(&w, 0),
                                                  .time_ns = number(&w, 1),
                                                  .step = number(&w, 2),
                                                  .kind = text(&w, 3),
                                                  .text = text(&w, 4)}))
            break;
    return walk_end(&w, TDBG_OK, error);
}

/* --- records -------------------------------------------------------------------------------------------- */

/* The records of this row in aligned memory of the store's. */
static tdbg_status read_records(struct walk *w, size_t size, size_t *count, struct tdbg_error *error)
{
    struct td_run_store *store = w->store;
    int64_t claimed = number(w, 2);
    size_t bytes = (size_t)sqlite3_column_bytes(w->rows, 3);
    if (claimed <= 0 || bytes % size || (uint64_t)claimed != bytes / size)
        return td_fail(error, TDBG_CORRUPT, "block %lld: %lld records in %zu bytes", (long long)number(w, 0),
                       (long long)claimed, bytes);
    if (bytes > store->scratch_size) {
        void *larger = realloc(store->scratch, bytes);
        if (!larger)
            return td_fail_nomem(error);
        store->scratch = larger;
        store->scratch_size = bytes;
    }
    memcpy(store->scratch, sqlite3_column_blob(w->rows, 3), bytes);
    *count = bytes / size;
    return TDBG_OK;
}

/* How many scopes there are. */
static tdbg_status last_scope(struct td_run_store *store, int64_t *out, struct tdbg_error *error)
{
    return td_sqlite_number(store->db, "SELECT coalesce(max(id), 0) FROM scope", out, error);
}

tdbg_status td_run_each_spans(struct td_run_store *store, int64_t after,
                              bool (*visit)(void *context, int64_t id, int64_t step,
                                            const struct td_run_span *spans, size_t count),
                              void *context, struct tdbg_error *error)
{
    struct walk w;
    tdbg_status status = TDBG_OK;
    int64_t scopes;
    size_t count;
    TD_TRY(walk_init(&w, store, TD_RUN_SPANS, after, error));
    while (walk_on(&w)) {
        const struct td_run_span *spans;
        status = read_records(&w, sizeof *spans, &count, error);
        if (status == TDBG_OK) /* the walk is one moment: rows and scopes belong together */
            status = last_scope(store, &scopes, error);
        if (status != TDBG_OK)
            break;
        spans = store->scratch;
        for (size_t i = 0; i < count; i++)
            if (spans[i].scope == 0 || spans[i].scope > scopes || spans[i].begin_ns < 0 ||
                spans[i].end_ns < spans[i].begin_ns) {
                status = td_fail(error, TDBG_CORRUPT, "block %lld: span %zu contradicts the run",
                                 (long long)number(&w, 0), i);
                break;
            }
        if (status != TDBG_OK || !visit(context, number(&w, 0), number(&w, 1), spans, count))
            break;
    }
    return walk_end(&w, status, error);
}

tdbg_status td_run_each_blocks(struct td_run_store *store, int64_t after,
                               bool (*visit)(void *context, int64_t id, int64_t step,
                                             const struct td_run_block *blocks, size_t count),
                               void *context, struct tdbg_error *error)
{
    struct walk w;
    tdbg_status status = TDBG_OK;
    int64_t scopes;
    size_t count;
    TD_TRY(walk_init(&w, store, TD_RUN_BLOCKS, after, error));
    while (walk_on(&w)) {
        const struct td_run_block *blocks;
        status = read_records(&w, sizeof *blocks, &count, error);
        if (status == TDBG_OK)
            status = last_scope(store, &scopes, error);
        if (status != TDBG_OK)
            break;
        blocks = store->scratch;
        for (size_t i = 0; i < count; i++)
            if (blocks[i].scope > scopes || blocks[i].time_ns < 0) {
                status = td_fail(error, TDBG_CORRUPT, "block %lld: allocation %zu contradicts the run",
                                 (long long)number(&w, 0), i);
                break;
            }
        if (status != TDBG_OK || !visit(context, number(&w, 0), number(&w, 1), blocks, count))
            break;
    }
    return walk_end(&w, status, error);
}
