/* memory_symbols.h: addresses of a process that is gone, as function, file and line.
 *
 * The process has told which files were mapped where; their symbol tables give names, and their debugging
 * information, where they have it, lines. Nothing is fetched from anywhere.
 */
#ifndef TD_ANALYSE_MEMORY_SYMBOLS_H
#define TD_ANALYSE_MEMORY_SYMBOLS_H

#include "analyse/memory_story.h"
#include "shim/ring.h"

struct td_symbols;

/* The modules are borrowed. */
TD_CHECK tdbg_status td_symbols_open(struct td_symbols **out, const struct td_shim_module *modules,
                                     size_t count, struct tdbg_error *error);
void td_symbols_close(struct td_symbols **symbols);

/* Names a call stack: the innermost frame that is not the C or C++ library's own, and all of them below each
 * other. False when memory ran out. */
bool td_symbols_label(struct td_symbols *s, const struct td_shim_site *site, struct td_arena *arena,
                      struct td_memory_label *out);

#endif
