/* console.h: what the files of `tdbg console` share.
 *
 *     cmd_console.c      options; where lines come from; runs them one by one
 *     console_edit.c     lines from a person: editing, history, completion
 *     console_words.c    a line as words
 *     console_inputs.c   what is open, and which tensors a text means
 *     console_look.c     commands that look at tensors
 *     console_live.c     commands that talk to a live run
 *     console_help.c     the table of commands, and help
 *
 * A command returns an exit status as the commands of the program do; its error has been printed then.
 */
#ifndef TD_CLI_CONSOLE_H
#define TD_CLI_CONSOLE_H

#include "cli/operand.h"

enum { MOST_INPUTS = 26 };

struct live;

struct console {
    struct cli *cli;
    struct td_input *inputs[MOST_INPUTS]; /* by letter: 'a' is the first; NULL: a free place */
    struct live *live;                    /* the run it is attached to; NULL: none */
    char *left; /* the folder of a run that it was attached to and that is over; NULL: none, or opened */
    const char *rest; /* of the line, after the command's name */
    bool on_disk;     /* what was found last is not in the memory of the live run, but in its files */
    bool interactive, leaving;
};

/* What can be completed after a command. */
enum completion { COMPLETE_NOTHING, COMPLETE_TENSORS, COMPLETE_PATHS, COMPLETE_COMMANDS };

struct console_command {
    const char *name, *usage, *summary;
    const char *help; /* more, with examples */
    enum completion completion;
    int (*run)(struct console *c, int argc, char **argv); /* argv without the name */
};

/* --- the commands; each table ends with a row without a name -------------------------------------------- */

extern const struct console_command console_base_commands[], console_look_commands[], console_live_commands[];

/* By name, or by a beginning that only one has. NULL: none; the error has been printed when `loud`. */
const struct console_command *console_command_find(const char *name, bool loud);

/* The i-th of all, or NULL. */
const struct console_command *console_command_at(size_t i);

/* "tdbg: NAME: what is wrong (see 'help NAME')" */
int console_fail_usage(const char *name, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Options of a command, as those of the program; false after an error that was printed. */
bool console_parse(const char *name, const struct option *options, void *values, int argc, char **argv,
                   struct args *args);

/* --- lines ---------------------------------------------------------------------------------------------- */

enum { MOST_WORDS = 64 };

/* Splits in place at blanks outside quotes and brackets. The number of words; -1: an open quote, or too many.
 */
int console_split(char *line, char *words[MOST_WORDS]);

/* --- what is open --------------------------------------------------------------------------------------- */

/* Opens a PATH under the next letter and says so. */
int console_open(struct console *c, const char *path);
void console_close_all(struct console *c);

/* The tensors that a text means: NAME[slice], a pattern, a letter, letter:NAME, PATH, PATH:NAME; of a live
 * run the one it stopped at, by "." or by its name. `one`: exactly one is wanted, and it is named then.
 * Nothing is printed. */
TD_CHECK tdbg_status console_find(struct console *c, const char *text, bool one, struct operands *out,
                                  struct tdbg_error *error);

/* All that is open. */
TD_CHECK tdbg_status console_find_all(struct console *c, struct operands *out, struct tdbg_error *error);

/* --- lines from a person (console_edit.c) --------------------------------------------------------------- */

struct console_editor;

TD_CHECK tdbg_status console_editor_open(struct console_editor **out, struct console *c,
                                         struct tdbg_error *error);
void console_editor_close(struct console_editor **editor);

/* The next line, lent until the next call; NULL: Ctrl-D. */
const char *console_editor_line(struct console_editor *editor);

/* --- a live run (console_live.c) ------------------------------------------------------------------------ */

/* NOTFOUND when no process records a run in `dir`. */
TD_CHECK tdbg_status console_attach(struct console *c, const char *dir, struct tdbg_error *error);
void console_detach(struct console *c);

/* Says what happened since the last command. */
void console_live_listen(struct console *c);

/* Whether the text names the tensor the run stopped at; `slice` is what is behind the name, "" or "[…]". */
bool console_live_means(const struct console *c, const char *text, const char **slice);

/* That tensor as an input with one tensor, lent until the run goes on. One that is too large is fetched in
 * part: `slice` is "" then. */
TD_CHECK tdbg_status console_live_memory(struct console *c, const char **slice, struct td_input **out,
                                         struct tdbg_error *error);

/* Its folder. */
const char *console_live_dir(const struct console *c);

/* Names of the step so far: the i-th, or NULL. */
const char *console_live_name(struct console *c, size_t i);

#endif
