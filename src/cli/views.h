/* views.h: what the commands ls, stats and show print of tensors that are open already; for the console too.
 *
 * Each prints a table, or one JSON document where cli->json wants it, and returns an exit status; errors have
 * been printed then.
 */
#ifndef TD_CLI_VIEWS_H
#define TD_CLI_VIEWS_H

#include "cli/operand.h"

int ls_print(struct cli *cli, const struct operands *operands);

/* bins 0: no histograms. */
int stats_print(struct cli *cli, const struct operands *operands, int bins);

struct show_options {
    int64_t count; /* the first so many; -1: all of them */
    const char *npy, *csv;
    bool all; /* also those of a large tensor */
};

/* Of one tensor; it was named. */
int show_print(struct cli *cli, const struct operand *o, const struct show_options *wanted);

#endif
