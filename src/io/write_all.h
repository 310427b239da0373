/* write_all.h: write(2) until all is written. */
#ifndef TD_IO_WRITE_ALL_H
#define TD_IO_WRITE_ALL_H

#include <stddef.h>

/* 0, or the errno of what could not be written. */
int td_write_all(int file, const void *bytes, size_t size);

#endif
