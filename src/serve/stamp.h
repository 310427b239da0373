/* stamp.h: what a file or folder was when it was compared, in a few bytes.
 *
 *     f:SIZE:MTIME:INODE            a file
 *     d:COUNT:DIGEST                a folder: how many entries below it, and a sum over their stamps
 *
 * Cheap rather than certain: content is not read. Times are those of the system, in nanoseconds.
 */
#ifndef TD_SERVE_STAMP_H
#define TD_SERVE_STAMP_H

enum { TD_STAMP_SIZE = 80 };

/* Of PATH, PATH:NAME or PATH:NAME[slice]; "" when there is nothing. */
void td_stamp_take(char out[TD_STAMP_SIZE], const char *target);

#endif
