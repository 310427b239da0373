/* visit.c: see visit.h. */
#include "serve/visit.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The longest answer in JSON: a density plot of 512 x 512 counts, or a profile, some 20 bytes to a number. */
enum { MOST_JSON = 64 << 20 };

bool td_read_index(const char *text, size_t *out)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    *out = (size_t)value;
    return text[0] >= '0' && text[0] <= '9' && !*end && errno == 0;
}

static bool borrow(struct td_visit *v)
{
    struct tdbg_error error;
    const char *id = v->x->parameter[0];
    if (td_desk_borrow_now(v->x->desk, id, &v->opened))
        return true;
    if (!td_may_wait(v->x))
        return false;
    if (td_desk_borrow(v->x->desk, id, &v->opened, &error) == TDBG_OK)
        return true;
    td_answer_failure(v->x, &error);
    return false;
}

/* td_desk_subject or td_desk_sides. */
typedef tdbg_status look_up(struct td_desk *, const struct td_open_comparison *, size_t,
                            const struct td_subject **, struct tdbg_error *);

static bool begin(struct td_visit *v, struct td_exchange *x, look_up *find)
{
    struct tdbg_error error;
    *v = (struct td_visit){.x = x};
    if (!td_read_index(x->parameter[1], &v->index)) {
        td_answer_error(x, 404, "no pair '%.64s'", x->parameter[1]);
        return false;
    }
    int64_t generation;
    if (!td_query_int(x, "generation", 0, INT64_MAX, -1, &generation) || !borrow(v))
        return false;
    if (td_generation_check(v->opened->generation, generation, &error) == TDBG_OK &&
        find(x->desk, v->opened, v->index, &v->subject, &error) == TDBG_OK)
        return true;
    td_answer_failure(x, &error);
    td_visit_end(v);
    return false;
}

bool td_visit_begin(struct td_visit *v, struct td_exchange *x)
{
    return begin(v, x, td_desk_subject);
}

bool td_visit_begin_sides(struct td_visit *v, struct td_exchange *x)
{
    return begin(v, x, td_desk_sides);
}

bool td_visit_begin_long(struct td_visit *v, struct td_exchange *x)
{
    return td_may_wait(x) && td_visit_begin(v, x);
}

void td_visit_end(struct td_visit *v)
{
    td_desk_return(v->x->desk, &v->opened);
}

struct td_pool *td_visit_pool(const struct td_visit *v)
{
    return td_gallery_pool(v->subject->gallery);
}

bool td_visit_check(const struct td_visit *v, tdbg_status status, const struct tdbg_error *error)
{
    if (status != TDBG_OK)
        td_answer_failure(v->x, error);
    return status == TDBG_OK;
}

bool td_visit_word(const struct td_visit *v, const char *name, const char *const *words, int *out)
{
    const char *text = td_query(v->x, name);
    char known[128] = "";
    for (int i = 0; words[i]; i++) {
        if (!text || strcmp(text, words[i]) == 0) {
            *out = i;
            return true;
        }
        snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s", i ? ", " : "", words[i]);
    }
    td_answer_error(v->x, 400, "%s is '%.64s', not one of %s", name, text, known);
    return false;
}

bool td_visit_shown(const struct td_visit *v, const char *name, enum td_shown *out)
{
    static const char *const words[] = {"a", "b", "difference", NULL};
    int which;
    if (!td_query(v->x, name)) {
        *out = v->subject->has[0] ? TD_SHOW_A : TD_SHOW_B;
        return true;
    }
    if (!td_visit_word(v, name, words, &which))
        return false;
    *out = (enum td_shown)which;
    return true;
}

void td_answer_shape(struct td_exchange *x, const int64_t *sizes, int count)
{
    char text[TD_MAX_DIMS * 21 + 1] = "1"; /* no axes: one element */
    size_t used = 0;
    for (int i = 0; i < count; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, i ? ",%" PRId64 : "%" PRId64, sizes[i]);
    td_answer_header(x, "X-Tdbg-Shape", text);
}

void td_document_begin(struct td_document *d)
{
    td_buffer_init(&d->buffer, MOST_JSON);
    td_json_to_buffer(&d->json, &d->buffer);
    td_json_begin_object(&d->json);
}

void td_document_answer(struct td_document *d, struct td_exchange *x)
{
    td_json_end_object(&d->json);
    if (!td_json_finish(&d->json))
        d->buffer.failed = true;
    td_answer_json(x, 200, &d->buffer);
}
