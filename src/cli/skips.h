/* skips.h: what could not be read, told at the end of every listing. */
#ifndef TD_CLI_SKIPS_H
#define TD_CLI_SKIPS_H

#include "base/json.h"
#include "cli/operand.h"
#include "session/stats_rows.h"

/* On stderr: the first few unless -v, nothing with -q. */
void skips_print(const struct cli *cli, const struct operands *operands);

/* The entries of the "skipped" array. */
void skips_write(struct td_json *j, const struct operands *operands);

/* cli_fail for a tensor that could not be measured. */
int skips_fail(const struct td_stats_row *row);

#endif
