/* console_edit.c: lines from a person, by libedit: editing, history, completion (Tab).
 *
 * Ctrl-C gives up the line under way. While a line is edited it is a key like any other; while a command runs
 * it is the signal that stops the command.
 */
#include "cli/console.h"

#include "cli/data_folder.h"

#include <dirent.h>
#include <histedit.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { REMEMBERED = 1000, MOST_CANDIDATES = 2000, MOST_LISTED = 200 };

struct console_editor {
    struct console *console;
    EditLine *el;
    History *history;
    struct data_folder folder;
    char *line; /* the last one */
};

/* --- candidates ----------------------------------------------------------------------------------------- */

struct candidates {
    char *list[MOST_CANDIDATES];
    size_t count;
    const char *word;
    size_t length; /* of the word */
};

static void add_candidate(struct candidates *c, const char *text)
{
    if (c->count == MOST_CANDIDATES || strncmp(text, c->word, c->length) != 0)
        return;
    for (size_t i = 0; i < c->count; i++)
        if (strcmp(c->list[i], text) == 0)
            return;
    char *copy = strdup(text);
    if (copy)
        c->list[c->count++] = copy;
}

static void add_commands(struct candidates *c)
{
    const struct console_command *command;
    for (size_t i = 0; (command = console_command_at(i)); i++)
        add_candidate(c, command->name);
}

static void add_tensors(struct candidates *c, struct console *console)
{
    const char *name;
    bool lettered = c->length > 1 && c->word[1] == ':';
    for (int k = 0; k < MOST_INPUTS; k++) {
        struct td_input *input = console->inputs[k];
        for (size_t i = 0; input && i < td_input_count(input); i++) {
            char *text = NULL;
            name = td_input_tensor(input, i)->name;
            if (!lettered)
                add_candidate(c, name);
            else if (c->word[0] == 'a' + k && asprintf(&text, "%c:%s", 'a' + k, name) >= 0)
                add_candidate(c, text);
            free(text);
        }
    }
    for (size_t i = 0; (name = console_live_name(console, i)); i++)
        add_candidate(c, name);
}

static void add_paths(struct candidates *c)
{
    const char *slash = strrchr(c->word, '/');
    int length = slash ? (int)(slash - c->word) + 1 : 0;
    char *folder = strndup(c->word, (size_t)length);
    DIR *dir = folder ? opendir(*folder ? folder : ".") : NULL;
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        char *path;
        struct stat st;
        if (entry->d_name[0] == '.' || asprintf(&path, "%s%s", folder, entry->d_name) < 0)
            continue;
        if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
            char *open_end;
            if (asprintf(&open_end, "%s/", path) >= 0) {
                add_candidate(c, open_end);
                free(open_end);
            }
        } else {
            add_candidate(c, path);
        }
        free(path);
    }
    if (dir)
        closedir(dir);
    free(folder);
}

/* --- completion ----------------------------------------------------------------------------------------- */

static enum completion kind_of(const char *line, size_t word_at)
{
    size_t blank = strspn(line, " "), length = strcspn(line + blank, " ");
    if (word_at <= blank)
        return COMPLETE_COMMANDS;
    char *name = strndup(line + blank, length);
    const struct console_command *command = name ? console_command_find(name, false) : NULL;
    free(name);
    return command ? command->completion : COMPLETE_NOTHING;
}

static void collect(struct candidates *c, struct console *console, enum completion kind)
{
    if (kind == COMPLETE_COMMANDS)
        add_commands(c);
    if (kind == COMPLETE_TENSORS)
        add_tensors(c, console);
    if (kind == COMPLETE_PATHS || (kind == COMPLETE_TENSORS && c->count == 0 && strchr(c->word, '/')))
        add_paths(c);
}

static size_t common_length(const struct candidates *c)
{
    size_t length = strlen(c->list[0]);
    for (size_t i = 1; i < c->count; i++) {
        size_t same = 0;
        while (same < length && c->list[i][same] == c->list[0][same])
            same++;
        length = same;
    }
    return length;
}

static void list_candidates(const struct candidates *c)
{
    putchar('\n');
    for (size_t i = 0; i < c->count && i < MOST_LISTED; i++)
        printf("%s\n", c->list[i]);
    if (c->count > MOST_LISTED)
        printf("and %zu more\n", c->count - MOST_LISTED);
}

/* What all candidates have in common is put in; where that is nothing they are listed. */
static unsigned char apply(EditLine *el, const struct candidates *c)
{
    if (c->count == 0)
        return CC_ERROR;
    size_t length = common_length(c);
    char *more = strndup(c->list[0] + c->length, length - c->length);
    bool whole = c->count == 1 && more && (length == 0 || c->list[0][length - 1] != '/');
    bool inserted = more && (*more ? el_insertstr(el, more) == 0 : false);
    if (whole)
        inserted = el_insertstr(el, " ") == 0 || inserted;
    free(more);
    if (inserted)
        return CC_REFRESH;
    list_candidates(c);
    return CC_REDISPLAY;
}

static unsigned char on_tab(EditLine *el, int key)
{
    struct console_editor *editor = NULL;
    const LineInfo *info = el_line(el);
    struct candidates *c = calloc(1, sizeof *c);
    char *line = strndup(info->buffer, (size_t)(info->cursor - info->buffer));
    unsigned char done = CC_ERROR;
    (void)key;
    el_get(el, EL_CLIENTDATA, &editor);
    if (c && line) {
        char *blank = strrchr(line, ' ');
        c->word = blank ? blank + 1 : line;
        c->length = strlen(c->word);
        collect(c, editor->console, kind_of(line, (size_t)(c->word - line)));
        done = apply(el, c);
    }
    for (size_t i = 0; c && i < c->count; i++)
        free(c->list[i]);
    free(c);
    free(line);
    return done;
}

/* --- the editor ----------------------------------------------------------------------------------------- */

static unsigned char on_interrupt(EditLine *el, int key)
{
    const LineInfo *info = el_line(el);
    (void)key;
    el_cursor(el, (int)(info->lastchar - info->cursor));
    info = el_line(el);
    el_deletestr(el, (int)(info->lastchar - info->buffer));
    fputs("^C\n", stdout);
    return el_insertstr(el, "\n") == 0 ? CC_NEWLINE : CC_ERROR;
}

static char *prompt(EditLine *el)
{
    static char text[] = "tdbg> ";
    (void)el;
    return text;
}

static void set_up(struct console_editor *e)
{
    HistEvent event;
    el_set(e->el, EL_PROMPT, prompt);
    el_set(e->el, EL_EDITOR, "emacs");
    el_set(e->el, EL_CLIENTDATA, e);
    el_set(e->el, EL_HIST, history, e->history);
    el_set(e->el, EL_ADDFN, "tdbg-complete", "completes a command or a name", on_tab);
    el_set(e->el, EL_BIND, "^I", "tdbg-complete", NULL);
    el_set(e->el, EL_ADDFN, "tdbg-interrupt", "gives up the line", on_interrupt);
    el_set(e->el, EL_BIND, "^C", "tdbg-interrupt", NULL);
    /* A Ctrl-D that came before the terminal was made ready arrives as a NUL. */
    el_set(e->el, EL_BIND, "^@", "ed-end-of-file", NULL);
    el_set(e->el, EL_BIND, "^R", "em-inc-search-prev", NULL);
    el_set(e->el, EL_SETTY, "-d", "-isig", NULL);
    el_source(e->el, NULL);
    history(e->history, &event, H_SETSIZE, REMEMBERED);
    history(e->history, &event, H_SETUNIQUE, 1);
    if (e->folder.history)
        history(e->history, &event, H_LOAD, e->folder.history);
}

tdbg_status console_editor_open(struct console_editor **out, struct console *c, struct tdbg_error *error)
{
    struct console_editor *e = calloc(1, sizeof *e);
    if (!e)
        return td_fail_nomem(error);
    e->console = c;
    e->el = el_init("tdbg", stdin, stdout, stderr);
    e->history = history_init();
    if (!e->el || !e->history) {
        console_editor_close(&e);
        return td_fail(error, TDBG_IO, "cannot edit lines on this terminal");
    }
    /* Without a folder to keep it in, the history ends with the console. */
    if (data_folder_init(&e->folder, NULL, NULL, NULL) != TDBG_OK)
        e->folder = (struct data_folder){0};
    set_up(e);
    *out = e;
    return TDBG_OK;
}

void console_editor_close(struct console_editor **editor)
{
    struct console_editor *e = *editor;
    HistEvent event;
    if (!e)
        return;
    if (e->history && e->folder.history)
        history(e->history, &event, H_SAVE, e->folder.history);
    if (e->history)
        history_end(e->history);
    if (e->el)
        el_end(e->el);
    data_folder_release(&e->folder);
    free(e->line);
    free(e);
    *editor = NULL;
}

const char *console_editor_line(struct console_editor *e)
{
    HistEvent event;
    int count = 0;
    const char *line = el_gets(e->el, &count);
    if (!line || count <= 0)
        return NULL;
    free(e->line);
    e->line = strndup(line, (size_t)count); /* libedit ends a line with its NUL only where its own key did */
    if (e->line && e->line[strspn(e->line, " \t\n")])
        history(e->history, &event, H_ENTER, e->line);
    return e->line;
}
