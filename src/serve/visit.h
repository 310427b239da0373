/* visit.h: what all routes that look at a pair begin and end with.
 *
 *     struct td_visit v;
 *     if (!td_visit_begin(&v, x))
 *         return;                  answered already, or run again where waiting is allowed
 *     …
 *     td_visit_end(&v);
 */
#ifndef TD_SERVE_VISIT_H
#define TD_SERVE_VISIT_H

#include "serve/desk.h"
#include "serve/exchange.h"
#include "session/gallery.h"

struct td_visit {
    struct td_exchange *x;
    const struct td_open_comparison *opened;
    const struct td_subject *subject;
    size_t index;
};

/* The number of a pair, as a path has it. */
bool td_read_index(const char *text, size_t *out);

/* The pair that the path names. */
bool td_visit_begin(struct td_visit *visit, struct td_exchange *x);
void td_visit_end(struct td_visit *visit);

/* The same for who looks at each side by itself, whether they line up or not. */
bool td_visit_begin_sides(struct td_visit *visit, struct td_exchange *x);

/* The same for what takes more than a few milliseconds. */
bool td_visit_begin_long(struct td_visit *visit, struct td_exchange *x);

struct td_pool *td_visit_pool(const struct td_visit *visit);

/* Answers when the status is a failure; true when it is none. */
bool td_visit_check(const struct td_visit *visit, tdbg_status status, const struct tdbg_error *error);

/* Which of the words (NULL-terminated) the parameter is; the first when it is not there. False: answered. */
bool td_visit_word(const struct td_visit *visit, const char *name, const char *const *words, int *out);

/* a, b or difference; without the parameter, the first side there is. */
bool td_visit_shown(const struct td_visit *visit, const char *name, enum td_shown *out);

void td_answer_shape(struct td_exchange *x, const int64_t *sizes, int count); /* X-Tdbg-Shape */

/* A JSON document that is written and answered. */
struct td_document {
    struct td_buffer buffer;
    struct td_json json;
};
void td_document_begin(struct td_document *d); /* with the object that it is */
void td_document_answer(struct td_document *d, struct td_exchange *x);

/* api_places.c and api_pictures.c */
void td_route_worst(struct td_exchange *x);
void td_route_find(struct td_exchange *x);
void td_route_histogram(struct td_exchange *x);
void td_route_density(struct td_exchange *x);
void td_route_profile(struct td_exchange *x);
void td_route_tile(struct td_exchange *x);
void td_route_export(struct td_exchange *x);

#endif
