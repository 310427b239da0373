/* step_file.h: the values of one step, written as they come into a .safetensors file.
 *
 * The header of the format stands in front of the data and is known only at the end. So room for it is left
 * free, and the finished header is padded with spaces, which the format allows; when the room is used up, the
 * step goes on in a second file. Until it is whole a file is named .part, and is renamed then: whoever sees
 * step-00000003.safetensors sees all of it.
 */
#ifndef TD_RECORD_STEP_FILE_H
#define TD_RECORD_STEP_FILE_H

#include "base/buffer.h"
#include "base/status.h"
#include "tensor/view.h"

#include <stdint.h>

struct td_step_file {
    const char *dir;                /* borrowed */
    int fd;                         /* -1: none under way */
    size_t room;                    /* for the header */
    uint64_t size;                  /* bytes of data so far */
    struct td_buffer header, notes; /* without the last brace; what goes into the metadata */
    char name[64];                  /* step-00000003.safetensors, or step-00000003-2.safetensors */
};

void td_step_file_init(struct td_step_file *file, const char *dir);

/* An unfinished file is removed. */
void td_step_file_release(struct td_step_file *file);

/* Adds a tensor to the file of step `number`; file->name says where it went. UNSUPPORTED: the format cannot
 * hold it. */
TD_CHECK tdbg_status td_step_file_add(struct td_step_file *file, int64_t number, const char *name,
                                      enum td_dtype dtype, const struct td_shape *shape, const void *data,
                                      uint64_t bytes, struct tdbg_error *error);

/* Makes it whole; nothing under way is fine. */
TD_CHECK tdbg_status td_step_file_finish(struct td_step_file *file, struct tdbg_error *error);

#endif
