/* families_table.h: the rows of families.c. */
#ifndef TD_COMPARE_NAME_FAMILIES_TABLE_H
#define TD_COMPARE_NAME_FAMILIES_TABLE_H

#include "compare/name/families.h"

struct td_family_row {
    const char *ending;
    enum td_role role;
    enum td_role other; /* what some engines mean by the same word; TD_ROLE_NONE: nobody does */
};

extern const struct td_family_row td_rows_in_layer[], td_rows_outside[];
extern const size_t td_rows_in_layer_count, td_rows_outside_count;

#endif
