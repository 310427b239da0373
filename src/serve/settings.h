/* settings.h: how to compare, as a client says it in JSON (docs/api.md, "Settings").
 *
 * A client is not to be trusted: every member is checked for its type and range, one we do not know is an
 * error, and a matcher that is a program is refused, since that would run commands for whoever asks.
 */
#ifndef TD_SERVE_SETTINGS_H
#define TD_SERVE_SETTINGS_H

#include "session/diff_setup.h"
#include "session/names_file.h"
#include "session/pairs_file.h"

#include <jansson.h>

struct td_settings {
    struct td_diff_setup setup; /* borrows from the rest */
    json_t *root;
    struct td_pairs pairs;
    struct td_names names;
};

/* MISUSE says what makes no sense, UNSUPPORTED what is not allowed. NULL is as good as {}. */
TD_CHECK tdbg_status td_settings_init(struct td_settings *out, const json_t *object,
                                      struct tdbg_error *error);
TD_CHECK tdbg_status td_settings_parse(struct td_settings *out, const char *text, struct tdbg_error *error);
void td_settings_release(struct td_settings *settings);

/* As JSON on one line; the caller frees. */
char *td_settings_print(const struct td_settings *settings);

#endif
