/* diff_files.c: see diff_files.h. */
#include "cli/diff_files.h"

#include "cli/cli.h"

#include "cli/outfile.h"
#include "report/diff_csv.h"
#include "report/diff_html.h"
#include "report/diff_junit.h"
#include "session/pairs_file.h"

static tdbg_status write_one(const char *path, void (*write)(FILE *, const struct td_diff *),
                             const struct td_diff *diff, struct tdbg_error *error)
{
    struct outfile out;
    TD_TRY(outfile_open(&out, path, error));
    write(out.file, diff);
    return outfile_commit(&out, error);
}

int diff_files_write(const struct td_diff *diff, const struct diff_files *files)
{
    const struct {
        const char *path;
        void (*write)(FILE *, const struct td_diff *);
    } reports[] = {{files->html, td_diff_html}, {files->junit, td_diff_junit}, {files->csv, td_diff_csv}};
    struct tdbg_error error;
    for (size_t i = 0; i < sizeof reports / sizeof *reports; i++)
        if (reports[i].path && write_one(reports[i].path, reports[i].write, diff, &error) != TDBG_OK)
            return cli_fail(reports[i].path, &error);
    if (files->pairs && td_pairs_write(&diff->result.matches, files->pairs, &error) != TDBG_OK)
        return cli_fail(NULL, &error); /* which names the file */
    return EXIT_FINE;
}
