/* console_inputs.c: what the console has open, and which of its tensors a text means.
 *
 * Inputs have letters: a, b, c in the order they were opened. A text is looked for in this order: the tensor
 * a live run stopped at, a letter or letter:NAME, a name in all that is open, a path that is not open, a
 * pattern, and what a live run has recorded so far.
 */
#include "cli/console.h"

#include "base/pattern.h"
#include "cli/progress.h"
#include "cli/text.h"
#include "store/run_state.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* How often it is looked whether a run that ended is whole on disk, and how long between. */
enum { PATIENCE = 200, LOOK_US = 10000 };

int console_open(struct console *c, const char *path)
{
    struct tdbg_error error;
    int at = 0;
    while (at < MOST_INPUTS && c->inputs[at])
        at++;
    if (at == MOST_INPUTS) {
        (void)td_fail(&error, TDBG_LIMIT, "%d inputs are open already: 'close' one", MOST_INPUTS);
        return cli_fail(NULL, &error);
    }
    struct progress *progress = progress_start(c->cli, path, 0);
    tdbg_status status = td_input_open(&c->inputs[at], path, c->cli->job, &error);
    progress_stop(&progress);
    if (status != TDBG_OK)
        return cli_fail(path, &error);
    size_t count = td_input_count(c->inputs[at]);
    if (!c->cli->quiet)
        printf("%c  %s  %zu tensor%s\n", 'a' + at, path, count, text_plural(count));
    return EXIT_FINE;
}

void console_close_all(struct console *c)
{
    for (int i = 0; i < MOST_INPUTS; i++)
        td_input_close(&c->inputs[i]);
    free(c->left);
    c->left = NULL;
}

/* A process that says goodbye still writes its last step. */
static void await_end(const char *dir)
{
    for (int i = 0; i < PATIENCE; i++) {
        struct td_run_store *store;
        struct td_run_facts facts;
        if (td_run_store_open(&store, dir, NULL) != TDBG_OK)
            return;
        tdbg_status status = td_run_facts(store, &facts, NULL);
        td_run_store_close(&store);
        if (status != TDBG_OK || strcmp(td_run_state(&facts), "running") != 0)
            return;
        usleep(LOOK_US);
    }
}

/* What a run left that is over, where nothing else is open, once somebody looks. */
static void open_left(struct console *c)
{
    char *dir = c->left;
    for (int i = 0; i < MOST_INPUTS; i++)
        if (c->inputs[i])
            return;
    c->left = NULL;
    if (dir) {
        await_end(dir);
        (void)console_open(c, dir);
    }
    free(dir);
}

/* --- finding -------------------------------------------------------------------------------------------- */

/* Operands must not move: there is room for all of them from the start. */
static tdbg_status make_room(struct operands *out, size_t count, struct tdbg_error *error)
{
    *out = (struct operands){.items = calloc(count + 1, sizeof *out->items)};
    return out->items ? TDBG_OK : td_fail_nomem(error);
}

static tdbg_status add_input(struct operands *out, struct td_input *input, struct tdbg_error *error)
{
    struct operand *o = &out->items[out->count];
    *o = (struct operand){.input = input, .lent = true};
    o->target = (struct td_target){.path = strdup(td_input_path(input)), .name = strdup("")};
    if (!o->target.path || !o->target.name) {
        td_target_release(&o->target);
        return td_fail_nomem(error);
    }
    out->count++;
    return TDBG_OK;
}

/* NAME or NAME[slice] in one input. */
static tdbg_status add_named(struct operands *out, struct td_input *input, const char *name,
                             struct tdbg_error *error)
{
    struct operand *o = &out->items[out->count];
    TD_TRY(add_input(out, input, error));
    char *text = strdup(name);
    if (text) {
        free(o->target.name);
        o->target.name = text;
    }
    tdbg_status status =
        text ? td_target_resolve(&o->target, input, &o->selection, &o->slice, error) : td_fail_nomem(error);
    o->named = status == TDBG_OK;
    if (status != TDBG_OK) {
        operand_release(o);
        out->count--;
    }
    return status;
}

static bool is_pattern(const char *text)
{
    return strpbrk(text, "*?") != NULL;
}

/* Every tensor of the input whose name fits; to be counted first. */
static tdbg_status add_matches(struct operands *out, struct td_input *input, const char *pattern,
                               size_t *count, struct tdbg_error *error)
{
    for (size_t i = 0; i < td_input_count(input); i++) {
        const char *name = td_input_tensor(input, i)->name;
        if (!td_pattern_fits(pattern, name))
            continue;
        if (out)
            TD_TRY(add_named(out, input, name, error));
        else
            ++*count;
    }
    return TDBG_OK;
}

static tdbg_status find_pattern(struct td_input *const *inputs, int input_count, const char *pattern,
                                struct operands *out, struct tdbg_error *error)
{
    size_t count = 0;
    for (int i = 0; i < input_count; i++)
        if (inputs[i])
            TD_TRY(add_matches(NULL, inputs[i], pattern, &count, error));
    if (count == 0)
        return td_fail(error, TDBG_NOTFOUND, "no tensor fits '%s'", pattern);
    TD_TRY(make_room(out, count, error));
    for (int i = 0; i < input_count; i++)
        if (inputs[i])
            TD_TRY(add_matches(out, inputs[i], pattern, &count, error));
    return TDBG_OK;
}

/* A name that only one of the open inputs has; NOTFOUND with the words of the first. */
static tdbg_status find_name(struct console *c, const char *text, struct operands *out,
                             struct tdbg_error *error)
{
    int found = 0, letters[2] = {0};
    struct tdbg_error first = {0}, other;
    TD_TRY(make_room(out, MOST_INPUTS, error));
    for (int i = 0; i < MOST_INPUTS; i++) {
        struct tdbg_error *why = first.status == TDBG_OK ? &first : &other;
        if (!c->inputs[i])
            continue;
        tdbg_status status = add_named(out, c->inputs[i], text, why);
        if (status == TDBG_OK && found < 2)
            letters[found++] = 'a' + i;
        else if (status != TDBG_OK && status != TDBG_NOTFOUND)
            first = *why; /* it is there, and something is wrong with the slice */
    }
    if (found == 1)
        return TDBG_OK;
    if (found > 1)
        return td_fail(error, TDBG_MISUSE, "both %c and %c have it: say %c:%s or %c:%s", letters[0],
                       letters[1], letters[0], text, letters[1], text);
    if (first.status == TDBG_OK)
        return td_fail(error, TDBG_NOTFOUND, "nothing is open that could have it ('open PATH')");
    if (error)
        *error = first;
    return first.status;
}

/* "a", or "a:NAME"; false: it is no letter of an open input. */
static bool find_letter(struct console *c, const char *text, bool one, struct operands *out,
                        tdbg_status *status, struct tdbg_error *error)
{
    if (text[0] < 'a' || text[0] >= 'a' + MOST_INPUTS || (text[1] && text[1] != ':' && text[1] != '['))
        return false;
    struct td_input *input = c->inputs[text[0] - 'a'];
    size_t index;
    if (!input || td_input_find_exact(input, text, &index))
        return false;
    const char *name = text + 1 + (text[1] == ':');
    if (is_pattern(name) && !td_input_find_exact(input, name, &index)) {
        *status = find_pattern(&input, 1, name, out, error);
        return true;
    }
    *status = make_room(out, 1, error);
    if (*status == TDBG_OK)
        *status = *name || one ? add_named(out, input, name, error) : add_input(out, input, error);
    return true;
}

/* The tensor a live run stopped at. */
static tdbg_status find_stopped(struct console *c, const char *slice, struct operands *out,
                                struct tdbg_error *error)
{
    struct td_input *memory;
    char *name;
    TD_TRY(console_live_memory(c, &slice, &memory, error));
    TD_TRY(make_room(out, 1, error));
    if (asprintf(&name, "%s%s", td_input_tensor(memory, 0)->name, slice) < 0)
        return td_fail_nomem(error);
    tdbg_status status = add_named(out, memory, name, error);
    free(name);
    return status;
}

/* "step-3/layers.0.output" is meant by "layers.0.output". */
static bool names_tensor(const char *full, const char *name, size_t length)
{
    size_t total = strlen(full);
    return total >= length && strncmp(full + total - length, name, length) == 0 &&
           (total == length || full[total - length - 1] == '/');
}

/* The last recording of a tensor of the live run that is on disk. */
static tdbg_status find_recorded(struct console *c, const char *text, struct operands *out,
                                 struct tdbg_error *error)
{
    const char *bracket = *text && text[strlen(text) - 1] == ']' ? strrchr(text, '[') : NULL;
    size_t length = bracket ? (size_t)(bracket - text) : strlen(text), i;
    struct td_input *input = NULL;
    TD_TRY(make_room(out, 1, error));
    if (td_input_open(&input, console_live_dir(c), c->cli->job, NULL) != TDBG_OK)
        return td_fail(error, TDBG_NOTFOUND, "the run did not stop there, and no step of it is on disk yet");
    for (i = td_input_count(input); i > 0; i--)
        if (names_tensor(td_input_tensor(input, i - 1)->name, text, length))
            break;
    char *name = NULL;
    tdbg_status status = TDBG_OK;
    if (i == 0)
        status =
            td_fail(error, TDBG_NOTFOUND, "the run did not stop there, and no finished step on disk has it");
    else if (asprintf(&name, "%s%s", td_input_tensor(input, i - 1)->name, bracket ? bracket : "") < 0)
        status = td_fail_nomem(error);
    if (status == TDBG_OK)
        status = add_named(out, input, name, error);
    free(name);
    c->on_disk = status == TDBG_OK;
    if (c->on_disk)
        out->items[0].lent = false;
    else
        td_input_close(&input);
    return status;
}

/* What exists on disk under that name. */
static tdbg_status find_path(struct console *c, const char *text, bool one, struct operands *out,
                             struct tdbg_error *error)
{
    struct operand *o;
    TD_TRY(make_room(out, 1, error));
    o = &out->items[0];
    TD_TRY(td_target_init(&o->target, text, error));
    out->count = 1;
    TD_TRY(td_input_open(&o->input, o->target.path, c->cli->job, error));
    if (one || *o->target.name) {
        TD_TRY(td_target_resolve(&o->target, o->input, &o->selection, &o->slice, error));
        o->named = true;
    }
    return TDBG_OK;
}

static bool on_disk(const char *text)
{
    struct td_target target;
    if (td_target_init(&target, text, NULL) != TDBG_OK)
        return false;
    bool exists = access(target.path, F_OK) == 0;
    td_target_release(&target);
    return exists;
}

static tdbg_status find(struct console *c, const char *text, bool one, struct operands *out,
                        struct tdbg_error *error)
{
    const char *slice;
    tdbg_status status;
    if (console_live_means(c, text, &slice))
        return find_stopped(c, slice, out, error);
    if (c->live && text[0] == '.' && (!text[1] || text[1] == '['))
        return td_fail(error, TDBG_MISUSE, "the run is not stopped ('step' stops it)");
    if (find_letter(c, text, one, out, &status, error))
        return status;
    status = find_name(c, text, out, error);
    if (status != TDBG_NOTFOUND)
        return status;
    if (on_disk(text)) {
        operands_release(out);
        return find_path(c, text, one, out, error);
    }
    if (!is_pattern(text) && !c->live)
        return status;
    operands_release(out);
    if (!is_pattern(text))
        return find_recorded(c, text, out, error);
    return find_pattern(c->inputs, MOST_INPUTS, text, out, error);
}

tdbg_status console_find(struct console *c, const char *text, bool one, struct operands *out,
                         struct tdbg_error *error)
{
    *out = (struct operands){0};
    c->on_disk = false;
    open_left(c);
    tdbg_status status = find(c, text, one, out, error);
    if (status == TDBG_OK && one && out->count != 1)
        status = td_fail(error, TDBG_MISUSE, "%zu tensors fit, one is wanted", out->count);
    if (status != TDBG_OK)
        operands_release(out);
    return status;
}

tdbg_status console_find_all(struct console *c, struct operands *out, struct tdbg_error *error)
{
    c->on_disk = false;
    open_left(c);
    TD_TRY(make_room(out, MOST_INPUTS, error));
    for (int i = 0; i < MOST_INPUTS; i++)
        if (c->inputs[i])
            TD_TRY(add_input(out, c->inputs[i], error));
    return out->count ? TDBG_OK
                      : td_fail(error, TDBG_NOTFOUND, "nothing is open ('open PATH' opens something)");
}
