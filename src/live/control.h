/* control.h: a live run can be talked to: the control socket in its folder, and breakpoints.
 *
 * A thread of the library serves DIR/control (a stream socket, for the owner only) inside the recorded
 * process. Clients ask in lines of JSON and are told what happens; docs/console.md has the protocol. A
 * breakpoint holds the thread that meets it, inside tdbg_tensor or tdbg_scope_begin, as long as somebody is
 * attached. A client that dies, stays silent or talks nonsense costs the model nothing.
 *
 * The environment can ask for a stop before anybody is there:
 *     TDBG_BREAK='PATTERN if CONDITION'    several with ";"
 *     TDBG_WAIT=1                          the first tensor waits for somebody
 */
#ifndef TD_LIVE_CONTROL_H
#define TD_LIVE_CONTROL_H

#include "base/status.h"
#include "record/observer.h"
#include "store/run_folders.h"

struct td_control;

/* `run` and its folder outlive the control. */
TD_CHECK tdbg_status td_control_open(struct td_control **out, tdbg_run *run, const char *dir,
                                     struct tdbg_error *error);

/* Lets go of whoever is held. NULL: nothing. */
void td_control_close(struct td_control **control);

#endif
