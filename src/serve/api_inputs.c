/* api_inputs.c: the routes of inputs: what the server is, uploads, and the folders that may be opened.
 *
 * A folder shows what td_allow_path would let pass: no hidden files, no link that leads out of the roots, no
 * name that JSON cannot carry.
 */
#include "base/utf8.h"
#include "io/path.h"
#include "serve/assets.h"
#include "serve/request.h"
#include "serve/roots.h"
#include "serve/uploads.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Entries shown of one folder, and bytes of the answer. */
enum { MAX_ENTRIES = 10000, MAX_ANSWER = 64 << 20 };

/* Finishes the document; a failure shows in the buffer. */
static void answer(struct td_exchange *x, unsigned status, struct td_json *j, struct td_buffer *body)
{
    (void)td_json_finish(j);
    td_answer_json(x, status, body);
}

static void begin(struct td_json *j, struct td_buffer *body)
{
    td_buffer_init(body, MAX_ANSWER);
    td_json_to_buffer(j, body);
    td_json_begin_object(j);
}

static void status(struct td_exchange *x)
{
    const struct td_server_options *options = &x->server->options;
    struct td_buffer body;
    struct td_json json, *j = &json;
    begin(j, &body);
    td_json_field_string(j, "service", "tdbg");
    td_json_field_string(j, "version", tdbg_version());
    td_json_field_bool(j, "ui", td_assets[0].path != NULL);
    td_json_key(j, "roots");
    td_json_begin_array(j);
    for (size_t i = 0; td_roots_at(options->roots, i); i++)
        td_json_string(j, td_roots_at(options->roots, i));
    td_json_end_array(j);
    td_json_key(j, "limits");
    td_json_begin_object(j);
    td_json_field_uint(j, "upload", options->upload_limit);
    td_json_end_object(j);
    td_json_field_string(j, "start", x->server->start);
    td_json_field_string(j, "run", x->server->start_run);
    td_json_end_object(j);
    answer(x, 200, j, &body);
}

static void upload(struct td_exchange *x)
{
    struct td_uploaded done;
    struct tdbg_error error;
    if (td_uploads_find(x->server->options.uploads, x->fields[0].value, &done, &error) != TDBG_OK) {
        td_answer_failure(x, &error);
        return;
    }
    struct td_buffer body;
    struct td_json json, *j = &json;
    begin(j, &body);
    td_json_field_string(j, "id", done.id);
    td_json_field_string(j, "name", done.name);
    td_json_field_uint(j, "bytes", done.bytes);
    td_json_field_string(j, "sha256", done.sha256);
    td_json_end_object(j);
    td_uploaded_release(&done);
    answer(x, 201, j, &body);
}

/* --- Folders -------------------------------------------------------------------------------------------- */

static void write_entry(struct td_json *j, const char *name, const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0 || !(S_ISDIR(st.st_mode) || S_ISREG(st.st_mode)))
        return;
    td_json_begin_object(j);
    td_json_field_string(j, "name", name);
    td_json_field_string(j, "path", path);
    td_json_field_string(j, "kind", S_ISDIR(st.st_mode) ? "folder" : "file");
    td_json_field_uint(j, "bytes", S_ISDIR(st.st_mode) ? 0 : (uint64_t)st.st_size);
    td_json_end_object(j);
}

static int is_shown(const struct dirent *entry)
{
    return entry->d_name[0] != '.' && !td_path_hidden(entry->d_name) &&
           td_utf8_valid(entry->d_name, strlen(entry->d_name));
}

static int in_order(const struct dirent **a, const struct dirent **b)
{
    return td_path_compare((*a)->d_name, (*b)->d_name);
}

static void write_entries(struct td_json *j, const struct td_roots *roots, const char *folder,
                          struct dirent **entries, int count)
{
    td_json_key(j, "entries");
    td_json_begin_array(j);
    for (int i = 0; i < count && i < MAX_ENTRIES; i++) {
        char path[PATH_MAX], *real = NULL;
        const char *slash = folder[1] ? "/" : ""; /* of "/" itself */
        if (snprintf(path, sizeof path, "%s%s%s", folder, slash, entries[i]->d_name) >= (int)sizeof path)
            continue;
        if (td_roots_find(roots, path, &real, NULL) == TDBG_OK)
            write_entry(j, entries[i]->d_name, path);
        free(real);
    }
    td_json_end_array(j);
}

static void write_parent(struct td_json *j, const struct td_roots *roots, const char *folder)
{
    char *parent = strdup(folder), *slash = parent ? strrchr(parent, '/') : NULL;
    if (slash)
        slash[slash == parent] = 0;
    bool known = parent && folder[1] && td_roots_hold(roots, parent);
    td_json_field_string(j, "parent", known ? parent : NULL);
    free(parent);
}

static void list_roots(struct td_exchange *x, const struct td_roots *roots)
{
    struct td_buffer body;
    struct td_json json, *j = &json;
    begin(j, &body);
    td_json_field_string(j, "path", NULL);
    td_json_field_string(j, "parent", NULL);
    td_json_key(j, "entries");
    td_json_begin_array(j);
    for (size_t i = 0; td_roots_at(roots, i); i++)
        write_entry(j, td_roots_at(roots, i), td_roots_at(roots, i));
    td_json_end_array(j);
    td_json_end_object(j);
    answer(x, 200, j, &body);
}

static void list_folder(struct td_exchange *x, const struct td_roots *roots, const char *folder)
{
    struct dirent **entries;
    int count = scandir(folder, &entries, is_shown, in_order);
    if (count < 0) {
        if (errno == ENOTDIR)
            td_answer_error(x, 400, "%s is not a folder", folder);
        else
            td_answer_error(x, 422, "%s cannot be listed", folder);
        return;
    }
    struct td_buffer body;
    struct td_json json, *j = &json;
    begin(j, &body);
    td_json_field_string(j, "path", folder);
    write_parent(j, roots, folder);
    write_entries(j, roots, folder, entries, count);
    td_json_end_object(j);
    for (int i = 0; i < count; i++)
        free(entries[i]);
    free(entries);
    answer(x, 200, j, &body);
}

static void folder(struct td_exchange *x)
{
    const struct td_roots *roots = x->server->options.roots;
    const char *path = td_query(x, "path");
    char *real = NULL;
    struct tdbg_error error;
    if (!td_may_wait(x)) /* for a disk, or a network */
        return;
    if (!path || !*path)
        list_roots(x, roots);
    else if (td_roots_find(roots, path, &real, &error) == TDBG_OK)
        list_folder(x, roots, real);
    else if (error.status == TDBG_MISUSE)
        td_answer_error(x, 403, "%s", error.message);
    else
        td_answer_failure(x, &error);
    free(real);
}

const struct td_route td_routes_inputs[] = {
    {"GET", "/api/v1/status", TD_BODY_NONE, status},
    {"POST", "/api/v1/uploads", TD_BODY_FILE, upload},
    {"GET", "/api/v1/folder", TD_BODY_NONE, folder},
    {0},
};
