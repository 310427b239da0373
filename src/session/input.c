/* input.c: see input.h.
 *
 * A bundle is opened in three steps: recognise every member; open the indexes, because they take in shards
 * that would otherwise be listed twice; then open the rest in the bundle's order. Each member gets a
 * catalogue of its own, so that a reader that fails half-way leaves nothing behind; what it found moves into
 * the input's catalogue under its full name.
 */
#include "session/input.h"

#include "format/reader.h"
#include "io/map.h"
#include "io/path.h"
#include "io/source.h"
#include "kernel/stats.h"
#include "session/run_folder.h"
#include "session/sidecars.h"
#include "store/run_store.h"
#include "tensor/stage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct td_input {
    char *path;
    struct td_catalog catalog;
    struct td_bundle **bundles; /* in the order they were opened; an archive's after the one it lies in */
    size_t bundle_count;
    const struct td_tensor **by_name; /* sorted, for td_input_find */
    size_t readable;                  /* files that a reader took, whatever they held */
};

/* One walk: what every step of it needs. */
struct walk {
    struct td_input *input;
    struct td_job *job;
    struct td_run_index *indexes; /* of recorded runs that lie in archives */
    size_t index_count;
    struct td_sidecars sidecars;
    uint32_t files; /* that were read */
};

struct member {
    const struct td_source *source;
    const struct td_reader *reader; /* NULL: an archive, or nothing tdbg knows */
    bool covered;                   /* read through an index */
    bool failed;                    /* already reported */
};

static bool is_fatal(tdbg_status status)
{
    return status == TDBG_NOMEM || status == TDBG_CANCELLED;
}

static tdbg_status check_cancelled(struct td_job *job, struct tdbg_error *error)
{
    return td_job_cancelled(job) ? td_fail(error, TDBG_CANCELLED, "cancelled") : TDBG_OK;
}

/* The input owns the bundle from here on; on failure the caller still does. */
static tdbg_status keep_bundle(struct td_input *input, struct td_bundle *bundle, struct tdbg_error *error)
{
    struct td_bundle **more = reallocarray(input->bundles, input->bundle_count + 1, sizeof *more);
    if (!more)
        return td_fail_nomem(error);
    input->bundles = more;
    input->bundles[input->bundle_count++] = bundle;
    return TDBG_OK;
}

/* Reports a member that cannot be read, with the reason in `why`; what must stop the walk is passed on. */
static tdbg_status skip_member(struct walk *walk, const char *prefix, const char *name,
                               const struct tdbg_error *why, struct tdbg_error *error)
{
    if (is_fatal(why->status)) {
        if (error)
            *error = *why;
        return why->status;
    }
    char full[TD_MAX_NAME + 1], reason[sizeof why->message + 32];
    snprintf(full, sizeof full, "%s%s", prefix, name);
    return td_catalog_skip(&walk->input->catalog, full, error, "%s",
                           td_error_text(why, reason, sizeof reason));
}

/* "model.safetensors" for "model.safetensors.index.json": an index speaks for the file that was split. */
static const char *file_name(const struct member *member, struct td_arena *arena)
{
    static const char suffix[] = ".index.json";
    const char *name = member->source->name;
    size_t length = strlen(name), cut = sizeof suffix - 1;
    if (member->reader->covers && length > cut && strcmp(name + length - cut, suffix) == 0)
        return td_arena_strndup(arena, name, length - cut);
    return name;
}

/* The full name of `key` in `file`; NULL prefix: the file is PATH itself. */
static const char *join_name(struct td_arena *arena, const char *prefix, const char *file, const char *key)
{
    if (!prefix)
        return *key ? key : file;
    if (!*key)
        return td_arena_printf(arena, "%s%s", prefix, file);
    return td_arena_printf(arena, "%s%s:%s", prefix, file, key);
}

/* A name within its limit may exceed it once it is joined: then the tensor is reported, not the whole lost.
 */
static tdbg_status take_tensor(struct td_catalog *into, const char *name, const struct td_tensor *tensor,
                               struct tdbg_error *error)
{
    size_t length = strlen(name);
    if (length <= TD_MAX_NAME)
        return td_catalog_add(into, name, *tensor, error);
    return td_catalog_skip(into, tensor->name, error, "its full name has %zu bytes, %d at most", length,
                           TD_MAX_NAME);
}

static tdbg_status take_skip(struct td_catalog *into, const char *name, const struct td_skip *skip,
                             struct tdbg_error *error)
{
    return td_catalog_skip(into, strlen(name) <= TD_MAX_NAME ? name : skip->name, error, "%s", skip->reason);
}

/* Moves what a reader found into the input under its full name. `part` is left empty. */
static tdbg_status take_catalog(struct walk *walk, const char *prefix, const struct member *member,
                                struct td_catalog *part, struct tdbg_error *error)
{
    struct td_catalog *into = &walk->input->catalog;
    struct td_arena *arena = &part->arena;
    const char *file = file_name(member, arena), *name;
    if (!file)
        return td_fail_nomem(error);
    for (size_t i = 0; i < part->count; i++) {
        if (!(name = join_name(arena, prefix, file, part->tensors[i].name)))
            return td_fail_nomem(error);
        struct td_sequence *sequence = &part->tensors[i].sequence;
        sequence->written = member->source->written;
        sequence->list = walk->files + 1;
        sequence->kept = member->reader->keeps_order;
        sequence->at = i;
        TD_TRY(take_tensor(into, name, &part->tensors[i], error));
    }
    walk->files++;
    for (size_t i = 0; i < part->skip_count; i++) {
        if (!(name = join_name(arena, prefix, file, part->skips[i].name)))
            return td_fail_nomem(error);
        TD_TRY(take_skip(into, name, &part->skips[i], error));
    }
    if (!td_arena_absorb(&into->arena, arena)) /* side tables of affine and sparse tensors */
        return td_fail(error, TDBG_LIMIT, "more names and descriptors than tdbg takes on");
    walk->input->readable++;
    return TDBG_OK;
}

/* Reads one file's descriptors. Its own trouble goes to `why`, and is not fatal to the walk. */
static tdbg_status read_member(struct walk *walk, const char *prefix, const struct member *member,
                               struct tdbg_error *why, struct tdbg_error *error)
{
    struct td_catalog part;
    td_catalog_init(&part);
    tdbg_status status = member->reader->open(member->source, &part, why);
    if (status == TDBG_OK) {
        why->status = TDBG_OK;
        status = take_catalog(walk, prefix, member, &part, error);
    } else {
        why->status = status;
        status = TDBG_OK;
    }
    td_catalog_release(&part);
    return status;
}

static tdbg_status walk_bundle(struct walk *walk, struct td_bundle *bundle, const char *prefix, int depth,
                               struct tdbg_error *error);

/* Looks into an archive. An archive that cannot be opened is reported through `why`. */
static tdbg_status walk_archive(struct walk *walk, const struct td_source *source, const char *prefix,
                                int depth, struct tdbg_error *why, struct tdbg_error *error)
{
    struct td_bundle *bundle = NULL;
    why->status = TDBG_OK;
    if (depth >= TD_MAX_ARCHIVE_DEPTH) {
        td_fail(why, TDBG_LIMIT, "archives within archives, %d deep at most", TD_MAX_ARCHIVE_DEPTH);
        return TDBG_OK;
    }
    if (td_bundle_open_archive(&bundle, source, walk->job, why) != TDBG_OK)
        return TDBG_OK;
    tdbg_status status = keep_bundle(walk->input, bundle, error);
    if (status != TDBG_OK) {
        td_bundle_close(&bundle);
        return status;
    }
    return walk_bundle(walk, bundle, prefix, depth + 1, error);
}

/* Step 1: what each member is. */
static tdbg_status recognise(struct walk *walk, struct td_bundle *bundle, const char *prefix,
                             struct member *members, struct tdbg_error *error)
{
    for (size_t i = 0; i < td_bundle_count(bundle); i++) {
        struct tdbg_error why;
        TD_TRY(check_cancelled(walk->job, error));
        if (td_bundle_source(bundle, i, &members[i].source, &why) != TDBG_OK) {
            members[i].failed = true;
            TD_TRY(skip_member(walk, prefix, td_bundle_name(bundle, i), &why, error));
            continue;
        }
        members[i].reader = td_reader_for(members[i].source);
    }
    return TDBG_OK;
}

/* Step 2: indexes that read well take their shards out of the list; the others are reported. */
static tdbg_status open_indexes(struct walk *walk, const char *prefix, struct member *members, size_t count,
                                struct tdbg_error *error)
{
    for (size_t i = 0; i < count; i++) {
        if (!members[i].reader || !members[i].reader->covers)
            continue;
        struct tdbg_error why;
        TD_TRY(read_member(walk, prefix, &members[i], &why, error));
        members[i].failed = true;
        if (why.status != TDBG_OK) {
            TD_TRY(skip_member(walk, prefix, members[i].source->name, &why, error));
            continue;
        }
        for (size_t k = 0; k < count; k++)
            if (k != i && members[k].source &&
                members[i].reader->covers(members[i].source, members[k].source->name))
                members[k].covered = true;
    }
    return TDBG_OK;
}

/* Notes the run that an archive has an index of. */
static tdbg_status note_run(struct walk *walk, const char *prefix, const struct td_source *source,
                            struct tdbg_error *error)
{
    struct td_run_index *more = reallocarray(walk->indexes, walk->index_count + 1, sizeof *more);
    int folders = (int)(td_path_base(source->name) - source->name);
    if (!more)
        return td_fail_nomem(error);
    walk->indexes = more;
    const char *folder =
        td_arena_printf(&walk->input->catalog.arena, "%s%.*s", prefix, folders, source->name);
    if (!folder)
        return td_fail_nomem(error);
    walk->indexes[walk->index_count++] = (struct td_run_index){folder, source->data, source->size};
    return TDBG_OK;
}

/* What no reader knows, but tells the order of the tensors beside it. */
static tdbg_status open_sidecar(struct walk *walk, const char *prefix, const struct td_source *source,
                                struct tdbg_error *why, struct tdbg_error *error)
{
    if (td_sidecars_add(&walk->sidecars, prefix, source, why) != TDBG_OK && is_fatal(why->status)) {
        if (error)
            *error = *why;
        return why->status;
    }
    return TDBG_OK;
}

/* Step 3, for one member. */
static tdbg_status open_member(struct walk *walk, const char *prefix, const struct member *member, int depth,
                               struct tdbg_error *error)
{
    struct tdbg_error why = {.status = TDBG_OK};
    TD_TRY(check_cancelled(walk->job, error));
    if (member->reader) {
        TD_TRY(read_member(walk, prefix, member, &why, error));
    } else if (td_sidecar_probe(member->source)) {
        TD_TRY(open_sidecar(walk, prefix, member->source, &why, error));
    } else if (td_sidecar_accompanied(member->source)) {
        return TDBG_OK;
    } else if (td_bundle_probe(member->source)) {
        char inner[TD_MAX_NAME + 1];
        int length = snprintf(inner, sizeof inner, "%s%s/", prefix, member->source->name);
        if (length < 0 || (size_t)length >= sizeof inner)
            td_fail(&why, TDBG_LIMIT, "a name of more than %d bytes", TD_MAX_NAME);
        else
            TD_TRY(walk_archive(walk, member->source, inner, depth, &why, error));
    } else {
        if (depth > 0 && strcmp(td_path_base(member->source->name), TD_RUN_INDEX) == 0)
            TD_TRY(note_run(walk, prefix, member->source, error));
        td_fail(&why, TDBG_UNSUPPORTED, "not a tensor file");
    }
    return why.status == TDBG_OK ? TDBG_OK : skip_member(walk, prefix, member->source->name, &why, error);
}

static tdbg_status walk_bundle(struct walk *walk, struct td_bundle *bundle, const char *prefix, int depth,
                               struct tdbg_error *error)
{
    size_t count = td_bundle_count(bundle);
    struct member *members = calloc(count ? count : 1, sizeof *members);
    if (!members)
        return td_fail_nomem(error);
    tdbg_status status = recognise(walk, bundle, prefix, members, error);
    if (status == TDBG_OK)
        status = open_indexes(walk, prefix, members, count, error);
    for (size_t i = 0; status == TDBG_OK && i < count; i++)
        if (!members[i].failed && !members[i].covered)
            status = open_member(walk, prefix, &members[i], depth, error);
    free(members);
    return status;
}

/* PATH is one file: a tensor file, whose trouble is the caller's, or an archive. */
static tdbg_status walk_file(struct walk *walk, struct td_bundle *bundle, bool *archive,
                             struct tdbg_error *error)
{
    struct member member = {0};
    struct tdbg_error why = {.status = TDBG_OK};
    TD_TRY(td_bundle_source(bundle, 0, &member.source, error));
    member.reader = td_reader_for(member.source);
    *archive = !member.reader && td_bundle_probe(member.source);
    if (member.reader)
        TD_TRY(read_member(walk, NULL, &member, &why, error));
    else if (*archive)
        TD_TRY(walk_archive(walk, member.source, "", 0, &why, error));
    else if (member.source->size == 0)
        return td_fail(error, TDBG_UNSUPPORTED, "an empty file");
    else
        return td_fail(error, TDBG_UNSUPPORTED, "not a tensor file tdbg knows");
    if (why.status != TDBG_OK && error)
        *error = why;
    return why.status;
}

/* A folder or archive in which nothing at all could be read. */
static tdbg_status nothing_readable(const struct td_input *input, struct tdbg_error *error)
{
    const struct td_catalog *c = &input->catalog;
    if (c->skip_count == 0)
        return td_fail(error, TDBG_UNSUPPORTED, "no files in it");
    if (c->skip_count == 1)
        return td_fail(error, TDBG_UNSUPPORTED, "no tensor file in it: %.100s: %.200s", c->skips[0].name,
                       c->skips[0].reason);
    return td_fail(error, TDBG_UNSUPPORTED, "no tensor file in it: %.100s: %.160s; and %zu more",
                   c->skips[0].name, c->skips[0].reason, c->skip_count - 1);
}

static int compare_names(const void *a, const void *b)
{
    const struct td_tensor *const *x = a, *const *y = b;
    int by_name = strcmp((*x)->name, (*y)->name);
    return by_name ? by_name : (*x > *y) - (*x < *y);
}

/* NAME#2, NAME#3 for the tensors that share a name with one before them: {"a.b": x, "a": {"b": y}}. Into
 * `renamed`, by their place in by_name, which must stay sorted while names are looked up. */
static tdbg_status name_apart(struct td_input *input, const char **renamed, struct tdbg_error *error)
{
    size_t count = input->catalog.count, number = 1, unused;
    for (size_t i = 1; i < count; i++) {
        const char *name = input->by_name[i]->name;
        size_t length = strlen(name);
        char again[TD_MAX_NAME + 1];
        if (strcmp(input->by_name[i - 1]->name, name) != 0)
            number = 1;
        else if (length + 24 <= TD_MAX_NAME) {
            do
                snprintf(again, sizeof again, "%s#%zu", name, ++number);
            while (td_input_find_exact(input, again, &unused));
            renamed[i] = td_arena_strdup(&input->catalog.arena, again);
            if (!renamed[i])
                return td_fail_nomem(error);
        }
    }
    return TDBG_OK;
}

static tdbg_status index_names(struct td_input *input, struct tdbg_error *error)
{
    size_t count = input->catalog.count, changed = 0;
    input->by_name = calloc(count ? count : 1, sizeof *input->by_name);
    const char **renamed = calloc(count ? count : 1, sizeof *renamed);
    tdbg_status status = input->by_name && renamed ? TDBG_OK : td_fail_nomem(error);
    for (size_t i = 0; i < count && status == TDBG_OK; i++)
        input->by_name[i] = &input->catalog.tensors[i];
    if (status == TDBG_OK) {
        qsort(input->by_name, count, sizeof *input->by_name, compare_names);
        status = name_apart(input, renamed, error);
    }
    for (size_t i = 0; i < count && status == TDBG_OK; i++)
        if (renamed[i]) {
            input->catalog.tensors[input->by_name[i] - input->catalog.tensors].name = renamed[i];
            changed++;
        }
    if (changed)
        qsort(input->by_name, count, sizeof *input->by_name, compare_names);
    free(renamed);
    return status;
}

static tdbg_status fill(struct td_input *input, const char *path, struct td_job *job,
                        struct tdbg_error *error)
{
    struct walk walk = {.input = input, .job = job};
    struct td_bundle *bundle = NULL;
    input->path = strdup(path);
    if (!input->path)
        return td_fail_nomem(error);
    TD_TRY(td_bundle_open(&bundle, path, job, error));
    tdbg_status status = keep_bundle(input, bundle, error);
    if (status != TDBG_OK) {
        td_bundle_close(&bundle);
        return status;
    }
    bool many = true;
    size_t runs = 0;
    status = td_bundle_is_plain_file(bundle) ? walk_file(&walk, bundle, &many, error)
                                             : walk_bundle(&walk, bundle, "", 0, error);
    if (status == TDBG_OK && many)
        status = td_run_folder_arrange(&input->catalog, path, walk.indexes, walk.index_count, &runs, error);
    td_sidecars_apply(&walk.sidecars, input->catalog.tensors, input->catalog.count);
    td_sidecars_release(&walk.sidecars);
    free(walk.indexes);
    TD_TRY(status);
    if (many && input->readable == 0 && runs == 0)
        return nothing_readable(input, error);
    if (runs == 0)
        TD_TRY(td_stage_sort(input->catalog.tensors, input->catalog.count, error));
    return index_names(input, error);
}

tdbg_status td_input_open(struct td_input **out, const char *path, struct td_job *job,
                          struct tdbg_error *error)
{
    struct td_input *input = calloc(1, sizeof *input);
    if (!input)
        return td_fail_nomem(error);
    td_catalog_init(&input->catalog);
    tdbg_status status = fill(input, path, job, error);
    if (status == TDBG_OK)
        *out = input;
    else
        td_input_close(&input);
    return status;
}

void td_input_close(struct td_input **input)
{
    if (!*input)
        return;
    td_catalog_release(&(*input)->catalog);
    while ((*input)->bundle_count > 0)
        td_bundle_close(&(*input)->bundles[--(*input)->bundle_count]);
    free((*input)->bundles);
    free((*input)->by_name);
    free((*input)->path);
    free(*input);
    *input = NULL;
}

const char *td_input_path(const struct td_input *input)
{
    return input->path;
}

size_t td_input_count(const struct td_input *input)
{
    return input->catalog.count;
}

const struct td_tensor *td_input_tensor(const struct td_input *input, size_t index)
{
    return &input->catalog.tensors[index];
}

size_t td_input_skips(const struct td_input *input)
{
    return input->catalog.skip_count;
}

const struct td_skip *td_input_skip(const struct td_input *input, size_t index)
{
    return &input->catalog.skips[index];
}

bool td_input_find_exact(const struct td_input *input, const char *name, size_t *index)
{
    size_t low = 0, high = input->catalog.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(input->by_name[middle]->name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == input->catalog.count || strcmp(input->by_name[low]->name, name) != 0)
        return false;
    *index = (size_t)(input->by_name[low] - input->catalog.tensors);
    return true;
}

/* `part` is the end of `name`, after a '/' or a ':'. */
static bool ends_with_part(const char *name, const char *part)
{
    size_t length = strlen(name), tail = strlen(part);
    if (tail >= length || strcmp(name + length - tail, part) != 0)
        return false;
    char before = name[length - tail - 1];
    return before == '/' || before == ':';
}

/* "a, b, c, …": the first names, for an error. */
static const char *first_names(const struct td_input *input, char *out, size_t size)
{
    const size_t most = 4;
    size_t used = 0;
    out[0] = 0;
    for (size_t i = 0; i < input->catalog.count && i < most && used < size; i++)
        used += (size_t)snprintf(out + used, size - used, "%s%.60s", i ? ", " : "",
                                 input->catalog.tensors[i].name);
    if (input->catalog.count > most && used < size)
        snprintf(out + used, size - used, ", …");
    return out;
}

tdbg_status td_input_find(const struct td_input *input, const char *name, size_t *index,
                          struct tdbg_error *error)
{
    char names[280];
    size_t count = input->catalog.count, found = 0, at = 0;
    if (!*name && count == 1) {
        *index = 0;
        return TDBG_OK;
    }
    if (!*name && count == 0)
        return td_fail(error, TDBG_NOTFOUND, "holds no tensor");
    if (!*name)
        return td_fail(error, TDBG_NOTFOUND, "holds %zu tensors; name one of: %s", count,
                       first_names(input, names, sizeof names));
    if (td_input_find_exact(input, name, index))
        return TDBG_OK;
    for (size_t i = 0; i < count; i++)
        if (ends_with_part(input->catalog.tensors[i].name, name))
            found++, at = i;
    if (found > 1)
        return td_fail(error, TDBG_NOTFOUND, "%zu tensors end in '%.100s', such as %.100s", found, name,
                       input->catalog.tensors[at].name);
    if (found == 0)
        return td_fail(error, TDBG_NOTFOUND, "no tensor named '%.100s'; there are %zu: %.180s", name, count,
                       first_names(input, names, sizeof names));
    *index = at;
    return TDBG_OK;
}

tdbg_status td_input_verify(const struct td_tensor *tensor, struct tdbg_error *error)
{
    const uint8_t *data = tensor->sparse ? tensor->sparse->values.data : tensor->view.data;
    if (data && td_map_shrunk(data))
        return td_fail(error, TDBG_IO, "the file was cut short while it was read");
    return TDBG_OK;
}

tdbg_status td_input_stats(const struct td_tensor *tensor, struct td_pool *pool, struct td_job *job,
                           struct tdbg_stats *out, struct tdbg_error *error)
{
    struct tdbg_stats stats;
    TD_TRY(td_stats(tensor, pool, job, &stats, error));
    TD_TRY(td_input_verify(tensor, error));
    *out = stats;
    return TDBG_OK;
}
