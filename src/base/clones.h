/* clones.h: a loop compiled twice, for any CPU and for those that have more.
 *
 * For plain C that a compiler makes faster with newer instructions; the copy that suits the CPU is chosen
 * when the program is loaded. Results do not depend on it: nothing with floating-point numbers belongs here
 * (src/kernel does).
 */
#ifndef TD_BASE_CLONES_H
#define TD_BASE_CLONES_H

#ifdef __x86_64__
#define TD_CLONES(feature) __attribute__((target_clones(feature, "default")))
#else
#define TD_CLONES(feature)
#endif

#endif
