/* stage.c: see stage.h. */
#include "tensor/stage.h"

#include <stdlib.h>
#include <string.h>

static const char *const order[] = {
    "post_ln_pre_attn", "query",     "query_final", "key",     "key_final",           "value",
    "value_final",      "post_attn", "scaling",     "sliding", "post_attn_pre_resid", "pre_mlp",
    "post_mlp",
};

enum { PLACES = sizeof order / sizeof *order, MAX_LAYER_DIGITS = 9 };

const int td_stage_places = PLACES;

static int place_of(const char *stage, size_t length)
{
    for (int i = 0; i < PLACES; i++)
        if (strlen(order[i]) == length && memcmp(order[i], stage, length) == 0)
            return i;
    return PLACES;
}

/* {digits}_{stage} in text[0, length). */
static bool parse_part(const char *text, size_t length, struct td_stage *out)
{
    size_t digits = 0;
    int64_t layer = 0;
    while (digits < length && text[digits] >= '0' && text[digits] <= '9') {
        layer = layer * 10 + (text[digits] - '0');
        if (++digits > MAX_LAYER_DIGITS)
            return false;
    }
    if (digits == 0 || digits + 1 >= length || text[digits] != '_')
        return false;
    out->layer = layer;
    out->stage = text + digits + 1;
    out->stage_length = length - digits - 1;
    out->place = place_of(out->stage, out->stage_length);
    return true;
}

/* The length of text[0, length) up to the last '/' and with it. */
static size_t folder_of(const char *text, size_t length)
{
    while (length > 0 && text[length - 1] != '/')
        length--;
    return length;
}

static size_t without_extension(const char *text, size_t length)
{
    for (size_t i = length; i > 1; i--)
        if (text[i - 1] == '.')
            return i - 1;
    return length;
}

struct td_stage td_stage_parse(const char *name)
{
    struct td_stage out = {.layer = -1, .place = PLACES, .folder = name};
    size_t length = strlen(name);
    const char *colon = strchr(name, ':');
    size_t file = colon ? (size_t)(colon - name) : length;
    out.folder_length = folder_of(name, file);
    const char *base = name + out.folder_length;
    if (parse_part(base, without_extension(base, file - out.folder_length), &out) || !colon)
        return out;
    const char *key = colon + 1;
    size_t key_length = length - file - 1;
    if (parse_part(key, key_length, &out))
        out.folder_length = file + 1;
    return out;
}

static int compare_text(const char *a, size_t a_length, const char *b, size_t b_length)
{
    size_t common = a_length < b_length ? a_length : b_length;
    int by_text = common ? memcmp(a, b, common) : 0;
    return by_text ? by_text : (a_length > b_length) - (a_length < b_length);
}

/* By text, with runs of digits as numbers: rank2 before rank10. */
static int compare_folders(const struct td_stage *a, const struct td_stage *b)
{
    size_t i = 0, j = 0;
    while (i < a->folder_length && j < b->folder_length) {
        unsigned long long x, y;
        char *x_end, *y_end;
        bool digits =
            a->folder[i] >= '0' && a->folder[i] <= '9' && b->folder[j] >= '0' && b->folder[j] <= '9';
        if (!digits) {
            if (a->folder[i] != b->folder[j])
                return (unsigned char)a->folder[i] < (unsigned char)b->folder[j] ? -1 : 1;
            i++, j++;
            continue;
        }
        x = strtoull(a->folder + i, &x_end, 10);
        y = strtoull(b->folder + j, &y_end, 10);
        if (x != y)
            return x < y ? -1 : 1;
        i = (size_t)(x_end - a->folder);
        j = (size_t)(y_end - b->folder);
    }
    if (i < a->folder_length || j < b->folder_length)
        return i < a->folder_length ? 1 : -1;
    return compare_text(a->folder, a->folder_length, b->folder, b->folder_length); /* 01 is not 1 */
}

/* Orders by folder, layer, place, stage; 0 for tensors that keep the order they have. Names without a layer
 * come after the ones with a layer in the same folder. */
static int compare_stages(const struct td_stage *a, const struct td_stage *b)
{
    int by_folder = compare_folders(a, b);
    if (by_folder)
        return by_folder;
    if (a->layer < 0 || b->layer < 0)
        return (a->layer < 0) - (b->layer < 0);
    if (a->layer != b->layer)
        return a->layer < b->layer ? -1 : 1;
    if (a->place != b->place)
        return a->place < b->place ? -1 : 1;
    return compare_text(a->stage, a->stage_length, b->stage, b->stage_length);
}

struct entry {
    struct td_stage stage;
    size_t index;
};

static int compare_entries(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    int by_stage = compare_stages(&x->stage, &y->stage);
    return by_stage ? by_stage : (x->index > y->index) - (x->index < y->index);
}

tdbg_status td_stage_sort(struct td_tensor *tensors, size_t count, struct tdbg_error *error)
{
    struct entry *entries = calloc(count ? count : 1, sizeof *entries);
    struct td_tensor *sorted = NULL;
    if (!entries)
        return td_fail_nomem(error);
    bool any = false;
    for (size_t i = 0; i < count; i++) {
        entries[i] = (struct entry){td_stage_parse(tensors[i].name), i};
        any = any || entries[i].stage.layer >= 0;
    }
    tdbg_status status = TDBG_OK;
    if (any) {
        qsort(entries, count, sizeof *entries, compare_entries);
        sorted = malloc(count * sizeof *sorted);
        if (!sorted) {
            status = td_fail_nomem(error);
        } else {
            for (size_t i = 0; i < count; i++)
                sorted[i] = tensors[entries[i].index];
            memcpy(tensors, sorted, count * sizeof *sorted);
        }
    }
    free(sorted);
    free(entries);
    return status;
}
