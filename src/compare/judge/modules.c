/* modules.c: see modules.h. The name of a module is what is left of an item's name without what tells the
 * part:
 *
 *     encoder.fc1.output.npy                               an output of encoder.fc1
 *     Module.fc1.Linear.forward.0.input.0.pt               an input of Module.fc1.Linear.forward.0
 *     Module.fc1.Linear.forward.0.parameters.weight.pt     a parameter of it
 *     encoder.fc1.weight                                   a parameter of encoder.fc1
 *     encoder.fc1                                          its output
 */
#include "compare/judge/modules.h"

#include "base/limits.h"
#include "compare/name/name.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum part { PART_INPUT, PART_PARAMETER, PART_OUTPUT };

struct entry {
    const char *name;
    size_t length; /* of the module's */
    enum part part;
    const struct td_pair *pair;
};

struct td_modules {
    size_t count;
    struct entry list[]; /* by module */
};

static int compare_text(const char *a, size_t a_length, const char *b, size_t b_length)
{
    int order = memcmp(a, b, a_length < b_length ? a_length : b_length);
    return order ? order : (a_length > b_length) - (a_length < b_length);
}

static int compare_entries(const void *x, const void *y)
{
    const struct entry *a = x, *b = y;
    int order = compare_text(a->name, a->length, b->name, b->length);
    return order ? order : (a->pair > b->pair) - (a->pair < b->pair);
}

/* The last part of name[0, length), behind '.', '/' or ':'. */
static size_t last_part(const char *name, size_t length)
{
    while (length > 0 && !strchr("./:", name[length - 1]))
        length--;
    return length;
}

static bool is_word(const char *part, size_t length, const char *const *words)
{
    for (; *words; words++)
        if (strlen(*words) == length && strncmp(part, *words, length) == 0)
            return true;
    return false;
}

static bool is_number(const char *part, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (!isdigit((unsigned char)part[i]))
            return false;
    return length > 0;
}

static struct entry read_name(const struct td_pair *pair)
{
    static const char *const inputs[] = {"input", "inputs", NULL}, *const outputs[] = {"output", "outputs",
                                                                                       NULL};
    static const char *const parameters[] = {"parameters", NULL}, *const weights[] = {"weight", "bias", NULL};
    struct entry e = {pair->a->name, 0, PART_OUTPUT, pair};
    struct td_name parts = td_name_split(e.name);
    size_t end = parts.key ? strlen(e.name) : parts.stem;
    e.length = end;
    size_t begin = last_part(e.name, end);
    bool weight = is_word(e.name + begin, end - begin, weights);
    while (begin > 0 && is_number(e.name + begin, end - begin)) {
        end = begin - 1;
        begin = last_part(e.name, end);
    }
    if (begin > 0 && is_word(e.name + begin, end - begin, inputs))
        return (struct entry){e.name, begin - 1, PART_INPUT, pair};
    if (begin > 0 && is_word(e.name + begin, end - begin, outputs))
        return (struct entry){e.name, begin - 1, PART_OUTPUT, pair};
    if (!pair->a->parameter || begin == 0)
        return e;
    size_t before = last_part(e.name, begin - 1);
    if (before > 0 && is_word(e.name + before, begin - 1 - before, parameters))
        return (struct entry){e.name, before - 1, PART_PARAMETER, pair};
    return weight ? (struct entry){e.name, begin - 1, PART_PARAMETER, pair} : e;
}

struct td_modules *td_modules_open(const struct td_pair *pairs, size_t count)
{
    struct td_modules *m = malloc(sizeof *m + count * sizeof *m->list);
    if (!m)
        return NULL;
    m->count = 0;
    for (size_t i = 0; i < count; i++)
        if (pairs[i].a && td_pair_measured(&pairs[i]))
            m->list[m->count++] = read_name(&pairs[i]);
    if (m->count)
        qsort(m->list, m->count, sizeof *m->list, compare_entries);
    return m;
}

void td_modules_close(struct td_modules **modules)
{
    free(*modules);
    *modules = NULL;
}

/* The first entry that is not before the module; with `behind`, before the module or within it. */
static size_t find(const struct td_modules *m, const char *name, size_t length, bool behind)
{
    size_t low = 0, high = m->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct entry *e = &m->list[middle];
        size_t shared = e->length < length ? e->length : length;
        int order = behind ? compare_text(e->name, shared, name, length)
                           : compare_text(e->name, e->length, name, length);
        if (order < 0 || (behind && order == 0))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* msprobe puts the class and the call behind the path: "Module.block.Block.forward.0" has what lies in
 * Module.block within it, and all calls of itself are there too: *of_itself[0, length) of the name. With the
 * '.' or '/' at the end. */
static size_t inside_of(const struct entry *own, char *out, size_t size, size_t *of_itself)
{
    static const char *const calls[] = {".forward.", ".backward."};
    size_t length = own->length;
    *of_itself = length;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        const char *at = memmem(own->name, length, calls[i], strlen(calls[i]));
        size_t class = at ? last_part(own->name, (size_t)(at - own->name)) : 0;
        if (class) {
            length = class - 1;
            *of_itself = (size_t)(at - own->name) + 1;
        }
    }
    if (length + 2 > size)
        return 0;
    memcpy(out, own->name, length);
    out[length] = memchr(own->name, '.', length) || !memchr(own->name, '/', length) ? '.' : '/';
    return length + 1;
}

/* Something within the module was dumped: an error may be born there. */
static bool has_children(const struct td_modules *m, const struct entry *own)
{
    char inside[TD_MAX_NAME + 2];
    size_t of_itself, length = inside_of(own, inside, sizeof inside, &of_itself);
    if (length == 0)
        return true;
    size_t first = find(m, inside, length, false), end = find(m, inside, length, true);
    for (size_t i = 0; i < 2 && first < end; i++) {
        const struct entry *e = &m->list[i ? end - 1 : first];
        if (e->length < of_itself || memcmp(e->name, own->name, of_itself) != 0)
            return true;
    }
    return false;
}

struct td_intake td_modules_intake(const struct td_modules *m, const struct td_pair *pair,
                                   double (*size)(const struct td_metrics *))
{
    enum { MOST = 1024 }; /* of inputs and weights: no module has more, and names may say anything */
    struct td_intake out = {0};
    struct entry own = read_name(pair);
    if (own.part != PART_OUTPUT)
        return out;
    size_t at = find(m, own.name, own.length, false);
    for (size_t end = at + MOST; at < m->count && at < end; at++) {
        const struct entry *e = &m->list[at];
        if (compare_text(e->name, e->length, own.name, own.length) != 0)
            break;
        double error = e->pair->outcome.ruling.verdict == TD_DIVERGED ? size(&e->pair->outcome.metrics) : 0;
        double *into = e->part == PART_INPUT ? &out.inputs : &out.parameters;
        out.known = out.known || e->part == PART_INPUT;
        if (e->part != PART_OUTPUT && error > *into)
            *into = error;
    }
    out.known = out.known && !has_children(m, &own);
    return out;
}
