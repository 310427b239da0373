/* profile_findings.h: what stands out in a profile, and what to do about it.
 *
 * Each finding rests on numbers of the profile and quotes them; nothing is guessed. The thresholds are with
 * their rules.
 */
#ifndef TD_ANALYSE_PROFILE_FINDINGS_H
#define TD_ANALYSE_PROFILE_FINDINGS_H

#include "analyse/profile.h"

enum { TD_FINDINGS = 24 };

struct td_finding {
    const char *kind;        /* "hot", "outlier", … : a word for programs */
    uint32_t node;           /* TD_PROFILE_NONE: about the whole */
    double value, reference; /* the number, and what it is held against */
    char text[320];          /* what is so */
    const char *advice;      /* what to do */
};

struct td_findings {
    struct td_finding items[TD_FINDINGS]; /* the heaviest first within a rule */
    size_t count;
};

TD_CHECK tdbg_status td_profile_find_findings(const struct td_profile *profile, struct td_findings *out,
                                              struct tdbg_error *error);

#endif
