/* run_list.h: the recorded runs in a folder and below it. */
#ifndef TD_SERVE_RUN_LIST_H
#define TD_SERVE_RUN_LIST_H

#include "store/run_store.h"

struct td_listed_run {
    char *path;
    struct td_run_facts facts;
};

struct td_run_list {
    struct td_listed_run *runs; /* newest first, once sorted */
    size_t count, room;
    size_t looked; /* entries of folders */
    bool cut;      /* there was more than anybody would want to look through */
};

/* Adds the runs at and below `folder`. Links are not followed; what cannot be read is passed over. Several
 * folders may be added; the same run is listed once. False when memory ran out. */
bool td_run_list_add(struct td_run_list *list, const char *folder);
void td_run_list_sort(struct td_run_list *list);
void td_run_list_release(struct td_run_list *list);

#endif
