/* control.c: see control.h. */
#include "live/control.h"

tdbg_status td_control_open(struct td_control **out, tdbg_run *run, const char *dir, struct tdbg_error *error)
{
    (void)run, (void)dir, (void)error;
    *out = NULL;
    return TDBG_OK;
}

void td_control_close(struct td_control **control)
{
    *control = NULL;
}
