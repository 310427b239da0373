/* zip_inflate.c: the members of a zip, inflated three at a time by each of several threads.
 *
 *     members, the largest first ──► worker: three streams at once (stretch.h) ──► their places in one file
 *                                ──► worker: …
 *
 * By size, because the three of a worker should end together. A stream that makes more than a stretch has
 * room for goes on in the next round. What a worker cannot do, for whatever reason, it leaves: damage is
 * looked at, and told, by whoever reads the members one by one (zip.c).
 */
#include "base/checked.h"
#include "base/job.h"
#include "base/pool.h"
#include "io/bundle.h"
#include "io/stretch.h"
#include "io/zip.h"

#include <isa-l/crc.h>
#include <stdlib.h>
#include <string.h>

/* A worker takes 11 MiB. It is worth beginning with when it has so much to make. */
enum { MOST_WORKERS = 3, LEAST_SHARE = 2 << 20 };

/* Rounds that were slower than an ordinary decoder; then a worker leaves the rest to it. */
enum { MOST_MISSES = 4 };

/* Where members begin in the file. */
enum { ALIGNMENT = 64 };

struct task {
    const struct td_zip_member *member;
    uint64_t place;
    const uint8_t **data; /* the caller's */
    bool done;
};

struct batch {
    const struct td_zip *zip;
    struct task *tasks;
    size_t count;
    atomic_size_t next;
    struct td_spill_stream stream;
    struct td_job *job;
};

/* A member under way. */
struct strand {
    struct task *task; /* NULL: none */
    uint64_t at;       /* the bit where its next block begins */
    uint64_t made;
    uint32_t crc;
    uint8_t window[TD_DEFLATE_WINDOW];
};

/* --- a worker ------------------------------------------------------------------------------------------- */

static bool begin_strand(struct batch *batch, struct strand *strand)
{
    size_t index = atomic_fetch_add(&batch->next, 1);
    strand->task = index < batch->count ? &batch->tasks[index] : NULL;
    if (!strand->task)
        return false;
    strand->at = strand->task->member->offset * 8;
    strand->made = 0;
    strand->crc = 0;
    return true;
}

static uint64_t end_of(const struct td_zip_member *member)
{
    return (member->offset + member->packed) * 8;
}

/* What a stretch has added to a member. False: it is no use. */
static bool take_stretch(struct batch *batch, struct strand *strand, struct td_stretches *stretches,
                         unsigned index)
{
    const struct td_zip_member *member = strand->task->member;
    if (strand->made < TD_DEFLATE_WINDOW && td_stretches_reach(stretches, index) > strand->made)
        return false;
    size_t made;
    const uint8_t *bytes = td_stretches_finish(stretches, index, strand->window, &made, &strand->at);
    bool ended = td_stretches_ended(stretches, index);
    if ((made == 0 && !ended) || strand->at > end_of(member) || made > member->size - strand->made ||
        td_spill_stream_put(&batch->stream, strand->task->place + strand->made, bytes, made, NULL) != TDBG_OK)
        return false;
    strand->crc = crc32_gzip_refl(strand->crc, bytes, made);
    strand->made += made;
    if (!ended)
        memcpy(strand->window, bytes + made - TD_DEFLATE_WINDOW, TD_DEFLATE_WINDOW);
    strand->task->done = ended && strand->made == member->size && strand->crc == member->crc;
    return !ended || strand->task->done;
}

/* One round: every strand has a member, as long as there are any. False: there are none. */
static bool advance(struct batch *batch, struct strand *strands, struct td_stretches *stretches)
{
    uint64_t starts[TD_STRETCHES] = {0}, ends[TD_STRETCHES] = {0};
    bool any = false;
    for (unsigned i = 0; i < TD_STRETCHES; i++) {
        if (!strands[i].task && !begin_strand(batch, &strands[i]))
            continue;
        starts[i] = strands[i].at;
        ends[i] = end_of(strands[i].task->member);
        any = true;
    }
    if (!any)
        return false;
    td_stretches_decode_streams(stretches, batch->zip->data, batch->zip->size, starts, ends);
    for (unsigned i = 0; i < TD_STRETCHES; i++) {
        struct task *task = strands[i].task;
        if (task && (!take_stretch(batch, &strands[i], stretches, i) || task->done)) {
            strands[i].task = NULL;
            td_job_advance(batch->job, task->member->packed);
        }
    }
    return true;
}

static void work(void *context, uint64_t index)
{
    struct batch *batch = context;
    struct td_stretches *stretches = td_stretches_open();
    struct strand *strands = calloc(TD_STRETCHES, sizeof *strands);
    unsigned misses = 0;
    (void)index;
    while (stretches && strands && misses < MOST_MISSES && !td_job_cancelled(batch->job) &&
           advance(batch, strands, stretches))
        misses += !td_stretches_pay(stretches);
    free(strands);
    td_stretches_close(&stretches);
}

/* --- the batch ------------------------------------------------------------------------------------------ */

static int compare_tasks(const void *a, const void *b)
{
    const struct task *x = a, *y = b;
    return (x->member->size < y->member->size) - (x->member->size > y->member->size);
}

/* Gives every member its place; false: they are too few, or too much. */
static bool lay_out(struct batch *batch, const struct td_zip_member *const *members, size_t count,
                    const uint8_t **data, uint64_t *size)
{
    *size = 0;
    batch->tasks = calloc(count ? count : 1, sizeof *batch->tasks);
    for (size_t i = 0; batch->tasks && i < count; i++) {
        uint64_t end;
        if (!td_zip_can_inflate(members[i]))
            continue;
        batch->tasks[batch->count++] = (struct task){.member = members[i], .place = *size, .data = &data[i]};
        if (!td_add_u64(*size, members[i]->size, &end) || !td_add_u64(end, ALIGNMENT - 1, &end))
            return false;
        *size = end / ALIGNMENT * ALIGNMENT;
    }
    return batch->count > 1 && *size >= LEAST_SHARE;
}

static void run(struct batch *batch, uint64_t size)
{
    struct td_pool *pool = NULL;
    int workers;
    if (td_pool_wanted(&workers, NULL) != TDBG_OK)
        return;
    workers = workers < MOST_WORKERS ? workers : MOST_WORKERS;
    workers = (uint64_t)workers < size / LEAST_SHARE ? workers : (int)(size / LEAST_SHARE);
    if (td_pool_open(&pool, workers, NULL) != TDBG_OK)
        return;
    uint64_t packed = 0;
    for (size_t i = 0; i < batch->count; i++)
        packed += batch->tasks[i].member->packed;
    if (batch->job)
        atomic_fetch_add_explicit(&batch->job->total, packed, memory_order_relaxed);
    td_pool_run(pool, (uint64_t)workers, work, batch);
    td_pool_close(&pool);
    const uint8_t *bytes;
    size_t mapped;
    if (td_spill_stream_map(&batch->stream, &bytes, &mapped, NULL) != TDBG_OK)
        return;
    for (size_t i = 0; i < batch->count; i++)
        if (batch->tasks[i].done)
            *batch->tasks[i].data = bytes + batch->tasks[i].place;
}

void td_zip_inflate(const struct td_zip *zip, const struct td_zip_member *const *members, size_t count,
                    struct td_bundle *scratch, struct td_job *job, const uint8_t **data)
{
    struct batch batch = {.zip = zip, .stream.fd = -1, .job = job};
    uint64_t size;
    memset(data, 0, count * sizeof *data);
    if (lay_out(&batch, members, count, data, &size) &&
        td_spill_stream_open(&batch.stream, &scratch->spill, NULL) == TDBG_OK) {
        qsort(batch.tasks, batch.count, sizeof *batch.tasks, compare_tasks);
        if (td_spill_stream_pad(&batch.stream, size, NULL) == TDBG_OK)
            run(&batch, size);
        td_spill_stream_close(&batch.stream);
    }
    free(batch.tasks);
}
