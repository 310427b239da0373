/* memory_frames.c: see memory_frames.h. Frames are {"filename", "line", "name"}, the innermost first. */
#include "analyse/memory_frames.h"

#include "base/buffer.h"
#include "base/limits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_FRAMES = 64,
    LARGEST_FRAME = 32,
    NAMED_FRAMES = 3,
    FRAME_TEXT = 400,
    LABEL_TEXT = MOST_FRAMES * FRAME_TEXT
};

/* --- Numbers by key ------------------------------------------------------------------------------------- */

static size_t slot_of(const struct td_number_map *map, uint64_t key)
{
    size_t mask = map->capacity - 1, i = (size_t)(key * UINT64_C(0x9E3779B97F4A7C15) >> 20) & mask;
    while (map->slots[i].key && map->slots[i].key != key)
        i = (i + 1) & mask;
    return i;
}

/* 0 when it is not there: no number is stored as itself but as one more. */
static uint32_t find(const struct td_number_map *map, uint64_t key)
{
    return map->capacity ? map->slots[slot_of(map, key)].value : 0;
}

static bool insert(struct td_number_map *map, uint64_t key, uint32_t value)
{
    if (map->count >= map->capacity / 2) {
        struct td_number_map larger = {.capacity = map->capacity ? map->capacity * 2 : 256,
                                       .count = map->count};
        larger.slots = calloc(larger.capacity, sizeof *larger.slots);
        if (!larger.slots)
            return false;
        for (size_t i = 0; i < map->capacity; i++)
            if (map->slots[i].key)
                larger.slots[slot_of(&larger, map->slots[i].key)] = map->slots[i];
        free(map->slots);
        *map = larger;
    }
    size_t i = slot_of(map, key);
    map->count += map->slots[i].key == 0;
    map->slots[i].key = key;
    map->slots[i].value = value;
    return true;
}

static uint64_t mix(uint64_t hash, const void *bytes, size_t size)
{
    const unsigned char *p = bytes;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ p[i]) * UINT64_C(1099511628211);
    return hash;
}

#define EMPTY_HASH UINT64_C(14695981039346656037)

/* --- Frames --------------------------------------------------------------------------------------------- */

static uint64_t mix_value(uint64_t hash, const struct td_pickle_value *value)
{
    if (!value)
        return hash;
    if (value->kind == TD_PICKLE_STR || value->kind == TD_PICKLE_BYTES)
        return mix(hash, value->text, value->count);
    return value->kind == TD_PICKLE_INT ? mix(hash, &value->integer, sizeof value->integer) : hash;
}

static bool add_frame(struct td_frames *f, const struct td_pickle_value *frame)
{
    if (f->frame_count == f->frame_capacity) {
        size_t capacity = f->frame_capacity ? f->frame_capacity * 2 : 256;
        const struct td_pickle_value **larger = realloc(f->frames, capacity * sizeof *larger);
        if (!larger)
            return false;
        f->frames = larger;
        f->frame_capacity = capacity;
    }
    f->frames[f->frame_count++] = frame;
    return true;
}

/* The number of a frame plus one; 0 without memory. */
static uint32_t frame_number(struct td_frames *f, const struct td_pickle_value *frame)
{
    uint32_t number = find(&f->by_place, (uintptr_t)frame);
    if (number)
        return number;
    uint64_t hash = mix_value(EMPTY_HASH, td_pickle_get(frame, "filename"));
    hash = mix_value(hash, td_pickle_get(frame, "line"));
    hash = mix_value(hash, td_pickle_get(frame, "name")) | 1;
    number = find(&f->by_content, hash);
    if (!number) {
        if (!add_frame(f, frame) || !insert(&f->by_content, hash, (uint32_t)f->frame_count))
            return 0;
        number = (uint32_t)f->frame_count;
    }
    return insert(&f->by_place, (uintptr_t)frame, number) ? number : 0;
}

/* --- Labels --------------------------------------------------------------------------------------------- */

static const char *text_of(const struct td_pickle_value *frame, const char *key, char *out, size_t size)
{
    const struct td_pickle_value *value = td_pickle_get(frame, key);
    size_t n = 0;
    if (value && (value->kind == TD_PICKLE_STR || value->kind == TD_PICKLE_BYTES))
        for (; n < value->count && n < size - 1; n++) /* control codes of a file reach no terminal */
            out[n] = (unsigned char)value->text[n] < 32 || value->text[n] == 127 ? '?' : value->text[n];
    out[n] = 0;
    return out;
}

/* PyTorch's own code: what called it is of more interest. */
static bool is_library(const char *file)
{
    return strstr(file, "/torch/") || !strstr(file, ".py");
}

static void put_frame(const struct td_pickle_value *frame, char out[FRAME_TEXT], bool *library)
{
    char file[200], name[120];
    text_of(frame, "filename", file, sizeof file);
    text_of(frame, "name", name, sizeof name);
    *library = is_library(file);
    const char *slash = strrchr(file, '/');
    const struct td_pickle_value *line = td_pickle_get(frame, "line");
    long long number = line && line->kind == TD_PICKLE_INT ? (long long)line->integer : 0;
    snprintf(out, FRAME_TEXT, "%s (%s:%lld)", *name ? name : "?", slash ? slash + 1 : file, number);
}

/* The name is of the first frames that are the user's own, or the innermost ones where there are none. */
static void put_name(struct td_frames *f, const uint32_t *numbers, size_t count, bool own,
                     struct td_buffer *out)
{
    int named = 0;
    for (size_t i = 0; i < count && named < NAMED_FRAMES; i++) {
        char text[FRAME_TEXT];
        bool library;
        put_frame(f->frames[numbers[i] - 1], text, &library);
        if (!own || !library)
            td_buffer_printf(out, "%s%s", named++ ? " < " : "", text);
    }
}

static bool make_label(struct td_frames *f, const uint32_t *numbers, size_t count,
                       struct td_memory_label *out)
{
    struct td_buffer name, stack;
    td_buffer_init(&name, LABEL_TEXT);
    td_buffer_init(&stack, LABEL_TEXT);
    for (size_t i = 0; i < count; i++) {
        char text[FRAME_TEXT];
        bool library;
        put_frame(f->frames[numbers[i] - 1], text, &library);
        td_buffer_printf(&stack, "%s%s", i ? "\n" : "", text);
    }
    put_name(f, numbers, count, true, &name);
    if (name.size == 0)
        put_name(f, numbers, count, false, &name);
    out->name = td_arena_strdup(f->arena, td_buffer_text(&name));
    out->stack = td_arena_strdup(f->arena, td_buffer_text(&stack));
    bool good = out->name && out->stack && !name.failed && !stack.failed;
    td_buffer_release(&name);
    td_buffer_release(&stack);
    return good;
}

static bool add_label(struct td_frames *f, const struct td_memory_label *label)
{
    if (f->label_count == f->label_capacity) {
        size_t capacity = f->label_capacity ? f->label_capacity * 2 : 64;
        struct td_memory_label *larger = realloc(f->labels, capacity * sizeof *larger);
        if (!larger)
            return false;
        f->labels = larger;
        f->label_capacity = capacity;
    }
    f->labels[f->label_count++] = *label;
    return true;
}

tdbg_status td_frames_init(struct td_frames *f, struct td_arena *arena, struct tdbg_error *error)
{
    *f = (struct td_frames){.arena = arena};
    struct td_memory_label none = {.name = "no stack recorded"};
    return add_label(f, &none) ? TDBG_OK : td_fail_nomem(error);
}

void td_frames_release(struct td_frames *f)
{
    free(f->by_place.slots);
    free(f->by_content.slots);
    free(f->stacks.slots);
    free(f->frames);
    free(f->labels);
    *f = (struct td_frames){0};
}

tdbg_status td_frames_owner(struct td_frames *f, const struct td_pickle_value *list, uint32_t *owner,
                            struct tdbg_error *error)
{
    uint32_t numbers[MOST_FRAMES];
    size_t count = 0;
    bool is_list = list && (list->kind == TD_PICKLE_LIST || list->kind == TD_PICKLE_TUPLE);
    for (size_t i = 0; is_list && i < list->count && count < MOST_FRAMES; i++) {
        if (list->items[i]->kind != TD_PICKLE_DICT || list->items[i]->count > LARGEST_FRAME)
            continue;
        if (!(numbers[count++] = frame_number(f, list->items[i])))
            return td_fail_nomem(error);
    }
    if (count == 0) {
        *owner = 0;
        return TDBG_OK;
    }
    uint64_t hash = mix(EMPTY_HASH, numbers, count * sizeof *numbers) | 1;
    uint32_t found = find(&f->stacks, hash);
    if (!found) {
        struct td_memory_label label;
        if (f->label_count == TD_MAX_MEMORY_OWNERS)
            return td_fail(error, TDBG_LIMIT, "more than %d call stacks", TD_MAX_MEMORY_OWNERS);
        if (!make_label(f, numbers, count, &label) || !add_label(f, &label) ||
            !insert(&f->stacks, hash, (uint32_t)f->label_count))
            return td_fail_nomem(error);
        found = (uint32_t)f->label_count;
    }
    *owner = found - 1;
    return TDBG_OK;
}
