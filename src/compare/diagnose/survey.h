/* survey.h: where along each axis a pair differs, of one that is too large for a diagnosis to look at whole.
 *
 * One pass over all elements, which the profile of the pair has made already, gives the squared error and the
 * power of A at every index of every axis. From them follow which indices are off by more than the noise, and
 * which part of the tensor is worth a look.
 */
#ifndef TD_COMPARE_DIAGNOSE_SURVEY_H
#define TD_COMPARE_DIAGNOSE_SURVEY_H

#include "base/job.h"
#include "base/pool.h"
#include "tensor/operand.h"

struct td_survey {
    struct td_shape shape;            /* of the whole */
    bool *touched[TD_MAX_DIMS];       /* NULL: an axis too long to keep account of */
    int64_t count[TD_MAX_DIMS];       /* how many are */
    const double *error[TD_MAX_DIMS]; /* NULL likewise */
};

/* `profile` is td_profile's of the pair, or NULL. All else lives in the arena. */
TD_CHECK tdbg_status td_survey_make(struct td_survey *out, const struct td_operand *a,
                                    const struct td_operand *b, const double *profile, double floor,
                                    struct td_pool *pool, struct td_job *job, struct td_arena *arena,
                                    struct tdbg_error *error);

/* Where a window of `keep` indices begins that shows both, what is wrong and what is right beside it. */
int64_t td_survey_window(const struct td_survey *survey, int axis, int64_t keep);

/* A share with that squared error and power of A is off by more than the floor; `typical` is the power that
 * shares have on average, of which one with next to none of its own gets a hundredth. */
static inline bool td_is_off(double floor, double error, double power, double typical)
{
    double least = 0.01 * typical;
    return error > floor * floor * (power > least ? power : least);
}

#endif
