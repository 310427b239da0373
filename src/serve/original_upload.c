/* original_upload.c: POST /upload: files in, the finished comparison out.
 *
 * The files are on disk when this runs. A comparison that fails is forgotten with its files: a client of this
 * API has no way to do so.
 */
#include "serve/original.h"

#include "serve/request.h"
#include "serve/uploads.h"

#include <string.h>

static const struct td_field *find_field(const struct td_exchange *x, const char *name, bool file)
{
    for (size_t i = 0; i < x->field_count; i++)
        if (strcmp(x->fields[i].name, name) == 0 && (x->fields[i].file_name != NULL) == file)
            return &x->fields[i];
    return NULL;
}

struct upload {
    const struct td_field *files[2]; /* the second is NULL when there is one */
    enum td_upload_mode mode;
};

/* NULL, or what is wrong with the form. */
static const char *read_form(const struct td_exchange *x, struct upload *out)
{
    const struct td_field *mode = find_field(x, "upload_mode", false),
                          *single = find_field(x, "single_file", true);
    out->files[0] = find_field(x, "model1", true);
    out->files[1] = find_field(x, "model2", true);
    bool both = out->files[0] && out->files[1];
    int named = TD_UPLOAD_MODES;
    for (int i = 0; mode && i < TD_UPLOAD_MODES; i++)
        if (strcmp(mode->value, td_upload_mode_names[i]) == 0)
            named = i;
    if (mode && named == TD_UPLOAD_MODES)
        return "upload_mode is none of dual_archive, dual_pth, single_file, mixed";
    bool alone = mode ? named == TD_SINGLE_FILE : single && !both;
    if (alone && !single)
        return "a file named single_file is needed";
    if (!alone && !both)
        return "two files are needed, model1 and model2, or one, single_file";
    if (alone) {
        *out = (struct upload){.files = {single}, .mode = TD_SINGLE_FILE};
        return NULL;
    }
    out->mode = mode ? (enum td_upload_mode)named
                     : td_upload_mode_of(out->files[0]->file_name, out->files[1]->file_name);
    return NULL;
}

/* Nobody will ask for them. */
static void drop_files(const struct td_exchange *x)
{
    for (size_t i = 0; i < x->field_count; i++)
        if (x->fields[i].file_name)
            (void)!td_uploads_remove(x->server->options.uploads, x->fields[i].value, NULL);
}

static tdbg_status start(struct td_exchange *x, const struct upload *upload, char *id,
                         struct tdbg_error *error)
{
    struct td_order order = {.session = x->session};
    struct td_order_side *sides[] = {&order.a, &order.b};
    struct td_uploaded found[2] = {0};
    tdbg_status status = TDBG_OK;
    for (int i = 0; i < 2 && upload->files[i] && status == TDBG_OK; i++) {
        status = td_uploads_find(x->server->options.uploads, upload->files[i]->value, &found[i], error);
        *sides[i] = (struct td_order_side){
            .name = found[i].name, .path = found[i].path, .upload = upload->files[i]->value};
    }
    if (status == TDBG_OK)
        status = td_desk_start(x->desk, &order, id, error);
    td_uploaded_release(&found[0]);
    td_uploaded_release(&found[1]);
    return status;
}

static tdbg_status compare(struct td_exchange *x, const struct upload *upload, struct tdbg_error *error)
{
    char id[TD_ID_LENGTH + 1];
    TD_TRY(start(x, upload, id, error));
    tdbg_status status = td_desk_wait(x->desk, id, error);
    if (status != TDBG_OK)
        (void)!td_desk_remove(x->desk, id, NULL); /* the first failure is the one to tell */
    return status;
}

static size_t tensors(const struct td_listing *l, bool second)
{
    if (l->self)
        return td_input_count(l->opened->input);
    return td_input_count(second ? l->opened->diff->b : l->opened->diff->a);
}

static tdbg_status put_answer(struct td_json *j, struct td_listing *l, struct tdbg_error *error)
{
    td_json_begin_object(j);
    td_json_field_uint(j, "model1_files", tensors(l, false));
    td_json_field_uint(j, "model2_files", tensors(l, true));
    td_json_field_string(j, "upload_mode", td_upload_mode_names[l->mode]);
    if (l->self && td_self_total(l->self) > l->count)
        td_json_field_uint(j, "matches_total", td_self_total(l->self));
    TD_TRY(td_matches_put(j, l, error));
    td_json_end_object(j);
    return TDBG_OK;
}

void td_original_upload(struct td_exchange *x)
{
    struct upload upload;
    struct td_listing listing;
    struct tdbg_error error;
    if (!td_may_wait(x))
        return;
    const char *wrong = read_form(x, &upload);
    if (wrong || compare(x, &upload, &error) != TDBG_OK) {
        drop_files(x);
        wrong ? td_answer_error(x, 400, "%s", wrong) : td_answer_failure(x, &error);
        return;
    }
    if (!td_listing_open(&listing, x))
        return;
    struct td_buffer body;
    struct td_json j;
    td_buffer_init(&body, SIZE_MAX);
    td_json_to_buffer(&j, &body);
    listing.mode = upload.mode;
    tdbg_status status = put_answer(&j, &listing, &error);
    td_answer_written(x, &j, &body, status, &error);
    td_listing_close(&listing);
}
