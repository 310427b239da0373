/* profile_words.h: times, rates and amounts as people read them, in the same words everywhere. */
#ifndef TD_ANALYSE_PROFILE_WORDS_H
#define TD_ANALYSE_PROFILE_WORDS_H

enum { TD_WORDS = 32 };

/* "1.24 ms", "870 ns", "0". Each returns `out`. */
const char *td_words_time(char out[TD_WORDS], double ns);

/* "3.2 G", "512"; for FLOPs and tokens. */
const char *td_words_count(char out[TD_WORDS], double count);

/* "3.2 GFLOP/s": the same with a unit. */
const char *td_words_rate(char out[TD_WORDS], double rate, const char *unit);

/* "1.5 MiB". */
const char *td_words_bytes(char out[TD_WORDS], double bytes);

#endif
