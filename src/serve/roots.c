/* roots.c: see roots.h. */
#include "serve/roots.h"

#include "base/utf8.h"
#include "io/path.h"
#include "serve/request.h"
#include "session/target.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ROOTS = 64 };

struct td_roots {
    char *paths[MAX_ROOTS], *inputs[MAX_ROOTS];
    size_t count, input_count;
    struct td_bound bound;
};

/* Who starts the server with an input names its links too, as on any command line. */
static bool holds(const void *context, const char *top, const char *real)
{
    const struct td_roots *roots = context;
    for (size_t i = 0; i < roots->input_count; i++)
        if (td_path_is_under(roots->inputs[i], top))
            return true;
    return td_roots_hold(roots, real);
}

tdbg_status td_roots_open(struct td_roots **out, struct tdbg_error *error)
{
    *out = calloc(1, sizeof **out);
    if (!*out)
        return td_fail_nomem(error);
    (*out)->bound = (struct td_bound){holds, *out};
    return TDBG_OK;
}

const struct td_bound *td_roots_bound(const struct td_roots *roots)
{
    return &roots->bound;
}

void td_roots_close(struct td_roots **roots)
{
    if (!*roots)
        return;
    for (size_t i = 0; i < (*roots)->count; i++)
        free((*roots)->paths[i]);
    for (size_t i = 0; i < (*roots)->input_count; i++)
        free((*roots)->inputs[i]);
    free(*roots);
    *roots = NULL;
}

tdbg_status td_roots_add(struct td_roots *roots, const char *path, struct tdbg_error *error)
{
    if (roots->count == MAX_ROOTS)
        return td_fail(error, TDBG_LIMIT, "more than %d roots", MAX_ROOTS);
    char *real = realpath(path, NULL);
    if (!real)
        return td_fail_errno(error, "cannot open");
    if (td_roots_hold(roots, real))
        free(real);
    else
        roots->paths[roots->count++] = real;
    return TDBG_OK;
}

tdbg_status td_roots_add_input(struct td_roots *roots, const char *path, struct tdbg_error *error)
{
    TD_TRY(td_roots_add(roots, path, error));
    if (roots->input_count == MAX_ROOTS)
        return td_fail(error, TDBG_LIMIT, "more than %d inputs", MAX_ROOTS);
    char *real = realpath(path, NULL);
    if (!real)
        return td_fail_errno(error, "cannot open");
    roots->inputs[roots->input_count++] = real;
    return TDBG_OK;
}

const char *td_roots_at(const struct td_roots *roots, size_t i)
{
    return i < roots->count ? roots->paths[i] : NULL;
}

bool td_roots_hold(const struct td_roots *roots, const char *real)
{
    for (size_t i = 0; i < roots->count; i++)
        if (td_path_is_under(roots->paths[i], real))
            return true;
    return false;
}

static tdbg_status fail_outside(struct tdbg_error *error)
{
    return td_fail(error, TDBG_MISUSE, "the path is not under a root of this server (--root adds one)");
}

static bool is_plain(const char *path)
{
    return path[0] && td_utf8_valid(path, strlen(path)) && td_path_is_inner(path[0] == '/' ? path + 1 : path);
}

tdbg_status td_roots_find(const struct td_roots *roots, const char *path, char **out,
                          struct tdbg_error *error)
{
    if (strcmp(path, "/") != 0 && !is_plain(path))
        return fail_outside(error);
    char *real = realpath(path, NULL);
    if (real && td_roots_hold(roots, real)) {
        *out = real;
        return TDBG_OK;
    }
    free(real);
    if (!real && path[0] == '/' && td_roots_hold(roots, path))
        return td_fail(error, TDBG_NOTFOUND, "there is nothing at %s", path);
    return fail_outside(error);
}

tdbg_status td_roots_find_target(const struct td_roots *roots, const char *text, char **out,
                                 struct tdbg_error *error)
{
    struct td_target target;
    char *real = NULL;
    TD_TRY(td_target_init(&target, text, error));
    tdbg_status status = td_roots_find(roots, target.path, &real, error);
    /* What stands between PATH and NAME, a colon or nothing, stays as it was. */
    if (status == TDBG_OK && asprintf(out, "%s%s", real, text + strlen(target.path)) < 0)
        status = td_fail_nomem(error);
    free(real);
    td_target_release(&target);
    return status;
}

bool td_allow_path(struct td_exchange *x, const char *text, char **out)
{
    struct tdbg_error error;
    tdbg_status status = td_roots_find_target(x->server->options.roots, text, out, &error);
    if (status == TDBG_OK)
        return true;
    if (status == TDBG_MISUSE)
        td_answer_error(x, 403, "%s", error.message);
    else
        td_answer_failure(x, &error);
    return false;
}
