/* clones.h: a loop compiled twice, for any CPU and for those that have more.
 *
 * For plain C that a compiler makes faster with newer instructions; the copy that suits the CPU is chosen
 * when the program is loaded. Results do not depend on it: nothing with floating-point numbers belongs here
 * (src/kernel does). Not under ThreadSanitizer: what chooses runs before the sanitizer is ready.
 */
#ifndef TD_BASE_CLONES_H
#define TD_BASE_CLONES_H

#ifndef __has_feature /* clang's; gcc defines a macro instead */
#define __has_feature(name) 0
#endif

#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__) && !__has_feature(thread_sanitizer)
#define TD_CLONES(feature) __attribute__((target_clones(feature, "default")))
#else
#define TD_CLONES(feature)
#endif

#endif
