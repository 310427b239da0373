/* streams.h: the answers that go on: server-sent events.
 *
 * A stream with nothing to say is a suspended connection: no thread, no polling by the HTTP library. One
 * ticker asks all of them ten times a second and wakes those that have something. What a client does not read
 * stays in its stream, which is not asked again until it was sent: a slow client has one event waiting, never
 * more. A comment every so often finds out who has gone.
 */
#ifndef TD_SERVE_STREAMS_H
#define TD_SERVE_STREAMS_H

#include "base/status.h"

struct td_streams;

TD_CHECK tdbg_status td_streams_open(struct td_streams **out, struct tdbg_error *error);

/* There is news: the ticker asks at once. */
void td_streams_hurry(struct td_streams *streams);

/* Tells every stream that this was it and wakes it; from now on none is suspended. */
void td_streams_end(struct td_streams *streams);

/* After the HTTP library has let go of all of them. */
void td_streams_close(struct td_streams **streams);

#endif
