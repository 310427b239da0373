/* profile_rows.h: which scopes of a profile are shown, and in what order. */
#ifndef TD_CLI_PROFILE_ROWS_H
#define TD_CLI_PROFILE_ROWS_H

#include "base/json.h"
#include "cli/profile_text.h"
#include "cli/table.h"

struct profile_rows {
    uint32_t *nodes; /* parents before their children */
    size_t count, left_out;
};

/* False when memory ran out. */
bool profile_rows_init(struct profile_rows *out, const struct td_profile *profile,
                       const struct profile_view *view);
void profile_rows_release(struct profile_rows *rows);

/* A cell with the name of a scope, indented by how deep it lies. */
void profile_name_cell(struct table *table, const char *name, uint32_t depth);

/* All scopes of one name together. Total times would count a scope within its own kind twice: only self. */
struct profile_name {
    uint32_t name;
    bool device;
    uint64_t calls, places;
    int64_t self_ns;
};

/* `*out` is to be freed. */
bool profile_names(const struct td_profile *profile, enum profile_sort sort, struct profile_name **out,
                   size_t *count);

/* The members of an object that was begun: those of td_profile_json, with names in the place of scopes where
 * the view is flat. False when memory ran out. */
bool profile_write(struct td_json *j, const struct td_profile_source *source,
                   const struct td_findings *findings, const struct profile_view *view);

#endif
