/* warming.c: see warming.h. One at a time: it is a favour, and takes all cores. A comparison that does not
 * lie open is left alone. */
#include "serve/warming.h"

#include "serve/desk.h"
#include "serve/request.h"
#include "session/gallery.h"

#include <stdlib.h>
#include <string.h>

struct warming {
    struct td_server *server;
    struct td_desk *desk;
    char id[TD_ID_LENGTH + 1];
    size_t index;
};

static void warm(void *context)
{
    struct warming *w = context;
    const struct td_open_comparison *opened;
    const struct td_subject *subject;
    if (td_desk_borrow_now(w->desk, w->id, &opened)) {
        if (td_desk_subject(w->desk, opened, w->index, &subject, NULL) == TDBG_OK)
            td_gallery_prepare(subject);
        td_desk_return(w->desk, &opened);
    }
    atomic_store(&w->server->warming, false);
    free(w);
}

void td_warm_pair(struct td_exchange *x, const char *id, size_t index)
{
    struct td_server *server = x->server;
    if (!x->desk || strlen(id) != TD_ID_LENGTH || atomic_exchange(&server->warming, true))
        return;
    struct warming *w = malloc(sizeof *w);
    if (w) {
        *w = (struct warming){.server = server, .desk = x->desk, .index = index};
        memcpy(w->id, id, sizeof w->id);
        if (td_waiting_start(&server->waiting, warm, w))
            return;
    }
    free(w);
    atomic_store(&server->warming, false);
}
