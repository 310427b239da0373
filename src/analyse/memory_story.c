/* memory_story.c: names and reports put together (see memory_story.h). */
#include "analyse/memory_story.h"

#include "base/limits.h"

#include <stdlib.h>
#include <string.h>

void td_memory_story_init(struct td_memory_story *s)
{
    *s = (struct td_memory_story){.title = ""};
    td_arena_init(&s->arena, TD_MAX_METADATA);
}

void td_memory_story_release(struct td_memory_story *s)
{
    td_memory_report_release(&s->report);
    free(s->labels);
    td_arena_release(&s->arena);
    *s = (struct td_memory_story){0};
}

/* --- Groups --------------------------------------------------------------------------------------------- */

struct named {
    const char *name;
    uint32_t owner;
};

static int by_name(const void *a, const void *b)
{
    const struct named *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    return order ? order : (x->owner > y->owner) - (x->owner < y->owner);
}

/* Returns the number of groups. */
static size_t group(struct named *named, size_t count, uint32_t *group_of)
{
    size_t groups = 0;
    qsort(named, count, sizeof *named, by_name);
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || strcmp(named[i - 1].name, named[i].name) != 0)
            groups++;
        group_of[named[i].owner] = (uint32_t)(groups - 1);
    }
    return groups;
}

tdbg_status td_memory_story_finish(struct td_memory_story *s, struct td_memory *memory,
                                   const struct td_memory_label *labels, int64_t end_ns,
                                   struct tdbg_error *error)
{
    size_t count = td_memory_owners(memory);
    struct named *named = calloc(count + 1, sizeof *named);
    uint32_t *group_of = calloc(count + 1, sizeof *group_of);
    tdbg_status status = named && group_of ? TDBG_OK : td_fail_nomem(error);
    if (status == TDBG_OK) {
        for (size_t i = 0; i < count; i++)
            named[i] = (struct named){labels[i].name, (uint32_t)i};
        size_t groups = group(named, count, group_of);
        status = td_memory_report_make(memory, group_of, groups, end_ns, &s->report, error);
    }
    if (status == TDBG_OK) {
        s->labels = calloc(s->report.group_count + 1, sizeof *s->labels);
        if (!s->labels)
            status = td_fail_nomem(error);
    }
    for (size_t i = 0; status == TDBG_OK && i < count; i++)
        s->labels[group_of[i]].name = labels[i].name;
    for (size_t i = 0; status == TDBG_OK && i < s->report.group_count; i++)
        s->labels[i].stack = labels[s->report.groups[i].owner].stack;
    free(group_of);
    free(named);
    return status;
}

bool td_memory_story_found(const struct td_memory_story *s)
{
    bool fragmented = false;
    for (int k = 0; k < TD_MOMENTS; k++)
        fragmented |= s->report.views[k].fragmented;
    return fragmented || (s->judged && s->report.leaks > 0);
}

/* --- Books ---------------------------------------------------------------------------------------------- */

static uint64_t peak_of(const struct td_memory_story *s)
{
    return s->report.views[TD_MOMENT_PEAK].live.bytes;
}

static int by_peak(const void *a, const void *b)
{
    uint64_t x = peak_of(a), y = peak_of(b);
    return x > y ? -1 : x < y;
}

void td_memory_book_sort(struct td_memory_book *book)
{
    if (book->count)
        qsort(book->stories, book->count, sizeof *book->stories, by_peak);
}

tdbg_status td_memory_book_add(struct td_memory_book *book, struct td_memory_story *story, size_t most,
                               struct tdbg_error *error)
{
    struct td_memory_story *larger = realloc(book->stories, (book->count + 1) * sizeof *larger);
    if (!larger)
        return td_fail_nomem(error);
    book->stories = larger;
    book->stories[book->count++] = *story;
    *story = (struct td_memory_story){0};
    if (book->count > most) {
        td_memory_book_sort(book);
        td_memory_story_release(&book->stories[--book->count]);
        book->others++;
    }
    return TDBG_OK;
}

void td_memory_book_release(struct td_memory_book *book)
{
    for (size_t i = 0; i < book->count; i++)
        td_memory_story_release(&book->stories[i]);
    free(book->stories);
    td_arena_release(&book->texts);
    *book = (struct td_memory_book){0};
}
