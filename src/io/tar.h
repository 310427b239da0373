/* tar.h: the members of a tar in memory. */
#ifndef TD_IO_TAR_H
#define TD_IO_TAR_H

#include "base/job.h"
#include "io/bundle.h"

bool td_tar_probe(const uint8_t *data, size_t size);

/* Adds the tar's files to the bundle; the bytes must outlive it. An archive that stops without its end mark
 * or is damaged from some point on, and one whose stream is known to be `cut`, gets a last member "(end of
 * archive)" that says so when opened. */
TD_CHECK tdbg_status td_tar_list(struct td_bundle *bundle, const uint8_t *data, size_t size, bool cut,
                                 struct td_job *job, struct tdbg_error *error);

#endif
