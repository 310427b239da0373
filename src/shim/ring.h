/* ring.h: the memory that a watched program shares with tdbg.
 *
 *     header page          who reads, and which of the places below are taken
 *     place 0, 1, 2 …      one for each process (and each program it becomes by exec), mapped when taken:
 *                          its name, a ring of events, the call stacks (sites) and modules they refer to
 *
 * It is a file without a name that tdbg opens and the program finds as /proc/READER/fd/N: the program has no
 * descriptor more than usual, and closing all of them does no harm.
 *
 * The ring has many writers and one reader. A writer takes a ticket; ticket t belongs to slot t mod SLOTS and
 * to lap t / SLOTS. A slot is free for lap n when its turn is 2n, filled when it is 2n + 1; the reader turns
 * it to 2n + 2. A writer whose slot is not free yet waits: nothing is lost, the program just becomes slower.
 * Tickets are taken after memory was got and before it is given back, so the order of tickets is one in which
 * no address is live twice.
 *
 * Sites, modules and names are written before the event that first refers to them, and never change.
 */
#ifndef TD_SHIM_RING_H
#define TD_SHIM_RING_H

#include <stdatomic.h>
#include <stdint.h>

#define TD_SHIM_VARIABLE "TDBG_MALLOC"
#define TD_SHIM_MAGIC UINT64_C(0x31676e6972676474)

enum {
    TD_SHIM_PLACES = 64,
    TD_SHIM_SLOTS = 1 << 15,
    TD_SHIM_SITES = 1 << 16,
    TD_SHIM_FRAMES = 16,
    TD_SHIM_MODULES = 1024,
    TD_SHIM_NAMES = 256,
    TD_SHIM_NAME = 64,
    TD_SHIM_HEADER = 4096
};

/* bytes: 0 for a release. A named snapshot has address 0, and bytes is the number of its name plus one. */
struct td_shim_event {
    _Atomic uint32_t turn;
    uint32_t site;
    uint64_t address, bytes;
    int64_t time_ns; /* CLOCK_MONOTONIC */
};

struct td_shim_site {
    uint32_t depth;
    uint32_t hash;
    uint64_t pc[TD_SHIM_FRAMES]; /* innermost first; all are return addresses */
};

struct td_shim_module {
    uint64_t start, end; /* addresses in the process */
    uint64_t base;       /* what was added to those in the file */
    char path[488];
};

struct td_shim_place {
    int32_t pid;
    uint32_t unused;
    int64_t start_ns;
    uint64_t heap;                      /* where the program break was at the start; 0: not known */
    char program[256];                  /* path of the executable */
    _Alignas(64) _Atomic uint64_t head; /* the next ticket */
    _Alignas(64) _Atomic uint32_t site_count;
    _Atomic uint32_t module_count, name_count;
    _Atomic uint64_t dropped; /* events of signal handlers that came while another was written */
    _Alignas(64) struct td_shim_event slots[TD_SHIM_SLOTS];
    struct td_shim_site sites[TD_SHIM_SITES]; /* number 0 stands for unknown ones */
    struct td_shim_module modules[TD_SHIM_MODULES];
    char names[TD_SHIM_NAMES][TD_SHIM_NAME];
};

enum td_shim_state { TD_SHIM_FREE, TD_SHIM_TAKEN, TD_SHIM_LIVE };

struct td_shim_header {
    uint64_t magic;
    int32_t reader; /* its process id */
    _Atomic uint32_t states[TD_SHIM_PLACES];
    _Atomic uint32_t unseen; /* processes that found no place */
};

/* Where place i lies in the file; a multiple of any page size in use. */
#define TD_SHIM_PLACE_SIZE ((sizeof(struct td_shim_place) + 65535) / 65536 * 65536)
#define TD_SHIM_OFFSET(i) (65536 + (uint64_t)(i)*TD_SHIM_PLACE_SIZE)

#endif
