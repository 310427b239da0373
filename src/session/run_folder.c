/* run_folder.c: see run_folder.h. */
#include "session/run_folder.h"

#include "base/limits.h"
#include "io/path.h"
#include "store/run_folders.h"
#include "store/run_store.h"

#include <fnmatch.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One file of values, and the step it belongs to. */
struct file {
    const char *name;
    int64_t step;
};

/* One run: the folder itself (prefix "") or one of its ranks ("rank-3/"), or a folder of an archive. */
struct run {
    const char *prefix; /* of the names of its files … */
    const char *label;  /* … and of its tensors: without the folders that all runs of an archive lie in */
    const struct td_run_index *index; /* in an archive */
    struct td_run_step *steps;        /* finished ones, by ordinal */
    size_t step_count, step_capacity;
    uint32_t *again;    /* of each step: how many before it had its number, as when each epoch begins at 0 */
    struct file *files; /* of the index, in its order: each once */
    size_t file_count, file_capacity;
    uint64_t without_values;
    size_t troubles;     /* of the program's calls that could not be recorded as they were meant */
    const char *trouble; /* the first of them */
};

struct runs {
    struct td_arena arena;
    struct run *list;
    size_t count;
    bool failed;   /* out of memory in a visit */
    bool numbered; /* several steps hold values: names carry theirs */
};

/* --- reading the index ---------------------------------------------------------------------------------- */

struct visit {
    struct runs *runs;
    struct run *run;
};

/* The array with room for one more, or NULL. */
static void *more(struct td_arena *arena, void *items, size_t count, size_t *capacity, size_t size)
{
    if (count < *capacity)
        return items;
    size_t larger = *capacity ? 2 * *capacity : 16;
    void *moved = td_arena_array(arena, larger, size);
    if (!moved)
        return NULL;
    if (count)
        memcpy(moved, items, count * size);
    *capacity = larger;
    return moved;
}

static bool visit_step(void *context, const struct td_run_step *row)
{
    struct visit *v = context;
    struct run *r = v->run;
    r->steps = more(&v->runs->arena, r->steps, r->step_count, &r->step_capacity, sizeof *r->steps);
    if (r->steps)
        r->steps[r->step_count++] = *row;
    v->runs->failed = !r->steps;
    return r->steps != NULL;
}

static bool visit_tensor(void *context, const struct td_run_tensor *row)
{
    struct visit *v = context;
    struct run *r = v->run;
    r->without_values += row->file == NULL;
    if (!row->file || (r->file_count && strcmp(r->files[r->file_count - 1].name, row->file) == 0))
        return true;
    r->files = more(&v->runs->arena, r->files, r->file_count, &r->file_capacity, sizeof *r->files);
    char *name = r->files ? td_arena_strdup(&v->runs->arena, row->file) : NULL;
    if (name)
        r->files[r->file_count++] = (struct file){name, row->step};
    v->runs->failed = !name;
    return name != NULL;
}

static bool visit_note(void *context, const struct td_run_note *row)
{
    struct visit *v = context;
    struct run *r = v->run;
    if (strcmp(row->kind, "trouble") != 0)
        return true;
    if (r->troubles++ == 0)
        r->trouble = td_arena_strdup(&v->runs->arena, row->text);
    v->runs->failed |= !r->trouble;
    return r->trouble != NULL;
}

static tdbg_status open_index(struct td_run_store **out, const struct run *run, const char *path,
                              struct tdbg_error *error)
{
    char dir[4096];
    if (run->index)
        return td_run_store_open_bytes(out, run->index->data, run->index->size, error);
    int length = snprintf(dir, sizeof dir, "%s/%s", path, run->prefix);
    if (length < 0 || (size_t)length >= sizeof dir)
        return td_fail(error, TDBG_LIMIT, "path too long");
    return td_run_store_open(out, dir, error);
}

struct numbered_step {
    int64_t number;
    size_t at;
};

static int compare_numbers(const void *a, const void *b)
{
    const struct numbered_step *x = a, *y = b;
    return x->number != y->number ? (x->number > y->number) - (x->number < y->number)
                                  : (x->at > y->at) - (x->at < y->at);
}

static tdbg_status count_again(struct td_arena *arena, struct run *run, struct tdbg_error *error)
{
    struct numbered_step *steps = calloc(run->step_count + 1, sizeof *steps);
    run->again = td_arena_array(arena, run->step_count + 1, sizeof *run->again);
    if (!steps || !run->again) {
        free(steps);
        return td_fail_nomem(error);
    }
    for (size_t i = 0; i < run->step_count; i++)
        steps[i] = (struct numbered_step){run->steps[i].number, i};
    qsort(steps, run->step_count, sizeof *steps, compare_numbers);
    for (size_t i = 0; i < run->step_count; i++)
        run->again[steps[i].at] =
            i > 0 && steps[i - 1].number == steps[i].number ? run->again[steps[i - 1].at] + 1 : 0;
    free(steps);
    return TDBG_OK;
}

static tdbg_status read_run(struct runs *runs, struct run *run, const char *path, struct tdbg_error *error)
{
    struct visit v = {runs, run};
    struct td_run_store *store;
    TD_TRY(open_index(&store, run, path, error));
    tdbg_status status = td_run_begin(store, error);
    if (status == TDBG_OK)
        status = td_run_each_step(store, -1, visit_step, &v, error);
    if (status == TDBG_OK)
        status = td_run_each_tensor(store, -1, visit_tensor, &v, error);
    if (status == TDBG_OK)
        status = td_run_each_note(store, -1, visit_note, &v, error);
    td_run_store_close(&store);
    if (status == TDBG_OK && runs->failed)
        status = td_fail_nomem(error);
    return status == TDBG_OK ? count_again(&runs->arena, run, error) : status;
}

static const struct td_run_step *find_step(const struct run *run, int64_t ordinal)
{
    size_t low = 0, high = run->step_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (run->steps[middle].ordinal < ordinal)
            low = middle + 1;
        else
            high = middle;
    }
    return low < run->step_count && run->steps[low].ordinal == ordinal ? &run->steps[low] : NULL;
}

/* The folder itself, or its ranks. */
static tdbg_status find_runs(struct runs *runs, const char *path, struct tdbg_error *error)
{
    struct td_run_folders folders;
    TD_TRY(td_run_folders_init(&folders, path, error));
    runs->list = td_arena_array(&runs->arena, folders.count + 1, sizeof *runs->list);
    bool full = runs->list;
    for (size_t i = 0; full && i < folders.count; i++) {
        const char *inner = strcmp(folders.paths[i], path) == 0 ? NULL : strrchr(folders.paths[i], '/');
        const char *prefix = inner ? td_arena_printf(&runs->arena, "%s/", inner + 1) : "";
        runs->list[i].prefix = runs->list[i].label = prefix;
        full = prefix;
    }
    runs->count = folders.count;
    td_run_folders_release(&folders);
    return full ? TDBG_OK : td_fail_nomem(error);
}

static int compare_indexes(const void *a, const void *b)
{
    const struct td_run_index *x = a, *y = b;
    return td_path_compare(x->prefix, y->prefix);
}

/* How much of the prefixes is folders that all of them lie in. */
static size_t common_folders(const struct td_run_index *indexes, size_t count)
{
    size_t common = strlen(indexes[0].prefix);
    for (size_t i = 1; i < count; i++) {
        size_t k = 0;
        while (k < common && indexes[i].prefix[k] == indexes[0].prefix[k])
            k++;
        common = k;
    }
    while (common && indexes[0].prefix[common - 1] != '/')
        common--;
    return common;
}

static tdbg_status take_indexes(struct runs *runs, struct td_run_index *indexes, size_t count,
                                struct tdbg_error *error)
{
    runs->list = td_arena_array(&runs->arena, count, sizeof *runs->list);
    if (!runs->list)
        return td_fail_nomem(error);
    qsort(indexes, count, sizeof *indexes, compare_indexes);
    size_t common = common_folders(indexes, count);
    for (size_t i = 0; i < count; i++)
        runs->list[i] = (struct run){
            .prefix = indexes[i].prefix, .label = indexes[i].prefix + common, .index = &indexes[i]};
    runs->count = count;
    return TDBG_OK;
}

/* More than one finished step with values in any of the runs. */
static bool several_steps(const struct runs *runs)
{
    for (size_t i = 0; i < runs->count; i++) {
        const struct run *r = &runs->list[i];
        int64_t seen = -1;
        for (size_t k = 0; k < r->file_count; k++) {
            if (!find_step(r, r->files[k].step))
                continue;
            if (seen >= 0 && r->files[k].step != seen)
                return true;
            seen = r->files[k].step;
        }
    }
    return false;
}

static tdbg_status runs_init(struct runs *runs, const char *path, struct td_run_index *indexes, size_t count,
                             struct tdbg_error *error)
{
    *runs = (struct runs){0};
    td_arena_init(&runs->arena, TD_MAX_METADATA);
    tdbg_status status = find_runs(runs, path, error);
    if (status == TDBG_OK && runs->count == 0 && count)
        status = take_indexes(runs, indexes, count, error);
    for (size_t i = 0; status == TDBG_OK && i < runs->count; i++)
        status = read_run(runs, &runs->list[i], path, error);
    if (status != TDBG_OK && status != TDBG_NOMEM && runs->count && runs->list[0].index) {
        runs->count = 0; /* what an archive calls run.db is none: its files are mere files */
        status = TDBG_OK;
    }
    runs->numbered = several_steps(runs);
    if (status != TDBG_OK)
        td_arena_release(&runs->arena);
    return status;
}

/* --- tensors with values -------------------------------------------------------------------------------- */

/* The file of a run that a tensor's name ("rank-1/step-00000003.safetensors:KEY") begins with. Names come
 * file by file, so the search goes on from where the last one was found. */
struct place {
    size_t run, file;
};

static bool is_in(const struct run *run, const struct file *file, const char *name, const char **key)
{
    size_t prefix = strlen(run->prefix), size = strlen(file->name);
    if (strncmp(name, run->prefix, prefix) != 0 || strncmp(name + prefix, file->name, size) != 0 ||
        name[prefix + size] != ':')
        return false;
    *key = name + prefix + size + 1;
    return true;
}

static bool find_file(const struct runs *runs, struct place *place, const char *name, const char **key)
{
    for (size_t i = 0; i < runs->count; i++) {
        const struct run *run = &runs->list[(place->run + i) % runs->count];
        size_t from = i == 0 ? place->file : 0;
        for (size_t k = 0; k < run->file_count; k++) {
            size_t at = (from + k) % run->file_count;
            if (is_in(run, &run->files[at], name, key)) {
                *place = (struct place){(size_t)(run - runs->list), at};
                return true;
            }
        }
    }
    return false;
}

static const char *run_name(struct td_arena *arena, const struct runs *runs, const struct run *run,
                            const struct td_run_step *step, const char *key)
{
    char again[16] = "";
    uint32_t before = run->again[step - run->steps];
    if (before)
        snprintf(again, sizeof again, "#%u", before + 1);
    return runs->numbered
               ? td_arena_printf(arena, "%sstep-%lld%s/%s", run->label, (long long)step->number, again, key)
               : td_arena_printf(arena, "%s%s", run->label, key);
}

/* A file of a step that the index does not know: the program died before it could. */
static bool is_left_over(const struct runs *runs, const char *name)
{
    for (size_t i = 0; i < runs->count; i++) {
        size_t length = strlen(runs->list[i].prefix);
        if (strncmp(name, runs->list[i].prefix, length) == 0 &&
            (fnmatch("step-[-0-9]*.safetensors:*", name + length, FNM_PATHNAME) == 0 ||
             fnmatch("step-[-0-9]*.safetensors.part:*", name + length, FNM_PATHNAME) == 0))
            return true;
    }
    return false;
}

/* A tensor, and where it was in the execution. */
struct placed {
    struct place place;
    size_t at;
    struct td_tensor tensor;
};

static int compare_places(const void *a, const void *b)
{
    const struct placed *x = a, *y = b;
    if (x->place.run != y->place.run)
        return (x->place.run > y->place.run) - (x->place.run < y->place.run);
    if (x->place.file != y->place.file)
        return (x->place.file > y->place.file) - (x->place.file < y->place.file);
    return (x->at > y->at) - (x->at < y->at);
}

/* A recorded tensor gets the name it is listed by; *left_out: it belongs to a step that is not there. */
static tdbg_status place_tensor(struct placed *p, const struct runs *runs, struct place *place,
                                struct td_arena *arena, bool *left_out, struct tdbg_error *error)
{
    const char *key;
    bool found = find_file(runs, place, p->tensor.name, &key);
    const struct run *run = &runs->list[place->run];
    const struct td_run_step *step = found ? find_step(run, run->files[place->file].step) : NULL;
    *left_out = !step && (found || is_left_over(runs, p->tensor.name));
    p->place = step ? *place : (struct place){runs->count, 0}; /* other files come last */
    if (!step)
        return TDBG_OK;
    p->tensor.name = run_name(arena, runs, run, step, key);
    p->tensor.executed = true;
    return p->tensor.name ? TDBG_OK : td_fail_nomem(error);
}

/* The folder's files come by their names, which are not always the order of the steps, an archive's in any
 * order. */
static tdbg_status rename_tensors(struct td_catalog *catalog, const struct runs *runs,
                                  struct tdbg_error *error)
{
    size_t kept = 0, unfinished = 0;
    struct place place = {0, 0};
    struct placed *placed = calloc(catalog->count + 1, sizeof *placed);
    tdbg_status status = placed ? TDBG_OK : td_fail_nomem(error);
    for (size_t i = 0; status == TDBG_OK && i < catalog->count; i++) {
        bool left_out = false;
        placed[kept] = (struct placed){.at = i, .tensor = catalog->tensors[i]};
        status = place_tensor(&placed[kept], runs, &place, &catalog->arena, &left_out, error);
        unfinished += left_out;
        kept += !left_out;
    }
    if (status == TDBG_OK) {
        qsort(placed, kept, sizeof *placed, compare_places);
        for (size_t i = 0; i < kept; i++)
            catalog->tensors[i] = placed[i].tensor;
        catalog->count = kept;
    }
    free(placed);
    TD_TRY(status);
    return unfinished
               ? td_catalog_skip(catalog, TD_RUN_INDEX, error, "%zu tensor%s of a step that was not finished",
                                 unfinished, unfinished == 1 ? "" : "s")
               : TDBG_OK;
}

/* Files of a run that are no tensors, and nobody expects to be. */
static bool is_machinery(const struct runs *runs, const char *name)
{
    for (size_t i = 0; i < runs->count; i++) {
        size_t length = strlen(runs->list[i].prefix);
        if (strncmp(name, runs->list[i].prefix, length) == 0 && td_run_owns(name + length))
            return !td_run_is_values(name + length);
    }
    return false;
}

static void forget_machinery(struct td_catalog *catalog, const struct runs *runs)
{
    size_t kept = 0;
    for (size_t i = 0; i < catalog->skip_count; i++)
        if (!is_machinery(runs, catalog->skips[i].name))
            catalog->skips[kept++] = catalog->skips[i];
    catalog->skip_count = kept;
}

/* What a program asked for and did not get: nobody else would tell it. */
static tdbg_status tell_troubles(struct td_catalog *catalog, const struct runs *runs,
                                 struct tdbg_error *error)
{
    size_t count = 0;
    const char *first = NULL;
    for (size_t i = 0; i < runs->count; i++) {
        count += runs->list[i].troubles;
        first = first ? first : runs->list[i].trouble;
    }
    if (count < 2)
        return first ? td_catalog_skip(catalog, TD_RUN_INDEX, error, "trouble while recording: %s", first)
                     : TDBG_OK;
    return td_catalog_skip(catalog, TD_RUN_INDEX, error, "trouble while recording, %zu times; the first: %s",
                           count, first);
}

tdbg_status td_run_folder_arrange(struct td_catalog *catalog, const char *path, struct td_run_index *indexes,
                                  size_t index_count, size_t *count, struct tdbg_error *error)
{
    struct runs runs;
    uint64_t without_values = 0;
    TD_TRY(runs_init(&runs, path, indexes, index_count, error));
    bool archived = runs.count && runs.list[0].index;
    tdbg_status status = TDBG_OK;
    if (runs.count) {
        forget_machinery(catalog, &runs);
        status = rename_tensors(catalog, &runs, error);
        for (size_t i = 0; i < runs.count; i++)
            without_values += runs.list[i].without_values;
    }
    if (status == TDBG_OK && without_values)
        status = td_catalog_skip(catalog, TD_RUN_INDEX, error,
                                 "%llu tensor%s recorded as statistics only (tdbg stats shows %s%s)",
                                 (unsigned long long)without_values, without_values == 1 ? "" : "s",
                                 without_values == 1 ? "it" : "them", archived ? ", unpacked" : "");
    if (status == TDBG_OK)
        status = tell_troubles(catalog, &runs, error);
    *count = runs.count;
    td_arena_release(&runs.arena);
    return status;
}

/* --- tensors without values ----------------------------------------------------------------------------- */

struct gathering {
    struct td_recorded_list *out;
    struct runs *runs;
    const struct run *run;
    size_t capacity;
};

static bool gather(void *context, const struct td_run_tensor *row)
{
    struct gathering *g = context;
    const struct td_run_step *step = row->file ? NULL : find_step(g->run, row->step);
    enum td_dtype dtype;
    if (!step || !td_dtype_find(row->dtype, &dtype) || g->out->count == TD_MAX_TENSORS)
        return true;
    struct td_arena *arena = &g->out->arena;
    g->out->items = more(arena, g->out->items, g->out->count, &g->capacity, sizeof *g->out->items);
    const char *name = g->out->items ? run_name(arena, g->runs, g->run, step, row->name) : NULL;
    g->runs->failed = !name;
    if (!name)
        return false;
    struct td_recorded *r = &g->out->items[g->out->count++];
    *r = (struct td_recorded){.stats = row->stats,
                              .tensor = {.name = name,
                                         .format = "run",
                                         .dtype = dtype,
                                         .shape = {.ndim = row->ndim},
                                         .count = (int64_t)row->stats.count}};
    memcpy(r->tensor.shape.size, row->shape, sizeof row->shape);
    return true;
}

/* Names carry their step when several steps are there, whatever was kept of them. */
static void number_all(struct runs *runs)
{
    for (size_t i = 0; i < runs->count; i++)
        runs->numbered = runs->numbered || runs->list[i].step_count > 1;
}

tdbg_status td_recorded_list_init(struct td_recorded_list *out, const char *path, struct tdbg_error *error)
{
    struct runs runs;
    *out = (struct td_recorded_list){0};
    TD_TRY(runs_init(&runs, path, NULL, 0, error));
    number_all(&runs);
    td_arena_init(&out->arena, TD_MAX_METADATA);
    tdbg_status status = TDBG_OK;
    for (size_t i = 0; status == TDBG_OK && i < runs.count; i++) {
        struct gathering g = {out, &runs, &runs.list[i], out->count};
        struct td_run_store *store;
        if ((status = open_index(&store, &runs.list[i], path, error)) != TDBG_OK)
            break;
        status = td_run_each_tensor(store, -1, gather, &g, error);
        td_run_store_close(&store);
        if (status == TDBG_OK && runs.failed)
            status = td_fail_nomem(error);
    }
    td_arena_release(&runs.arena);
    if (status != TDBG_OK)
        td_recorded_list_release(out);
    return status;
}

void td_recorded_list_release(struct td_recorded_list *list)
{
    td_arena_release(&list->arena);
    *list = (struct td_recorded_list){0};
}
