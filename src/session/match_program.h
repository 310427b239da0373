/* match_program.h: the user's own matcher: any program that reads a question and writes an answer.
 *
 *     stdin   {"version":1,"a":[{"name":"3_query.pth","dtype":"float32","shape":[76,45,64]},…],"b":[…]}
 *     stdout  {"pairs":[{"a":"3_query.pth","b":"layers.3.q"},…]}
 *
 * The command is the shell's to read, so that it may have arguments. Tensors of several shards say so by
 * "parts"; their shape is the first shard's. What the program does not pair is left to the rest of the chain.
 * Its stderr is ours.
 */
#ifndef TD_SESSION_MATCH_PROGRAM_H
#define TD_SESSION_MATCH_PROGRAM_H

#include "session/pairs_file.h"

#define TD_MATCH_PROGRAM_SECONDS 60

/* The pairs it answers, to be given to td_match_sides. `seconds` 0: TD_MATCH_PROGRAM_SECONDS. */
TD_CHECK tdbg_status td_match_program(struct td_pairs *out, const char *command, const struct td_side *a,
                                      const struct td_side *b, double seconds, struct tdbg_error *error);

/* Asks the "program:" of a chain, if there is one; else there are no pairs. */
TD_CHECK tdbg_status td_match_chain_program(struct td_pairs *out, const char *chain, const struct td_side *a,
                                            const struct td_side *b, struct tdbg_error *error);

#endif
