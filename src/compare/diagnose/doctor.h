/* doctor.h: says when the dumps, not the models, are at fault. */
#ifndef TD_COMPARE_DIAGNOSE_DOCTOR_H
#define TD_COMPARE_DIAGNOSE_DOCTOR_H

#include "compare/layout/align.h"
#include "compare/pair.h"

/* Sentences for people, allocated from the arena. */
TD_CHECK tdbg_status td_doctor(const struct td_pair *pairs, size_t count, const struct td_side *a,
                               const struct td_side *b, struct td_arena *arena, const char ***notes,
                               size_t *note_count, struct tdbg_error *error);

#endif
