/* cmd_diff.c: `tdbg diff`: where two runs part first, by how much, and what kind of mistake it looks like. */
#include "cli/cli.h"

#include "report/diff_json.h"

#include <stdlib.h>
#include <string.h>

struct diff_values {
    const char *match, *policy, *reference, *layout;
    int64_t top;
};

static int run(struct cli *cli, int argc, char **argv)
{
    struct diff_values values = {.top = 5};
    struct args args;
    int status;
    if (!cli_parse(cli, &cmd_diff, argc, argv, &values, &args, &status))
        return status;
    if (args.count != 2)
        return cli_fail_usage(&cmd_diff, "two PATHs are compared, %d given", args.count);
    struct td_pool *pool = cli_pool(cli);
    if (!pool)
        return EXIT_TROUBLE;
    struct td_diff_options options = {.match = {.strategy = values.match},
                                      .reference = values.reference,
                                      .layout = values.layout,
                                      .top = (int)values.top};
    struct td_diff *diff;
    struct tdbg_error error;
    if (td_diff_open(&diff, args.operands[0], args.operands[1], &options, pool, cli->job, &error) != TDBG_OK)
        return cli_fail(NULL, &error);
    struct td_json json;
    td_json_to_file(&json, stdout);
    td_diff_json(&json, diff, NULL);
    td_json_newline(&json);
    status = !td_json_finish(&json) ? EXIT_TROUBLE : diff->first ? EXIT_FINDINGS : EXIT_FINE;
    td_diff_close(&diff);
    return status;
}

static const struct option options[] = {
    {"match", 0, OPTION_TEXT, offsetof(struct diff_values, match), "STRATEGY", "how to pair"},
    {0},
};

const struct command cmd_diff = {
    .name = "diff",
    .summary = "Compare two dumps: where they part first, by how much, and why.",
    .usage = "A B",
    .help = "",
    .options = options,
    .run = run,
};
