/* utf8.h: text from files is shown to people and put into JSON, so it must be UTF-8 without control codes. */
#ifndef TD_BASE_UTF8_H
#define TD_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Length of the valid sequence at `text` (1-4) with its code point, or 0. Overlong forms, surrogates and
 * code points beyond U+10FFFF are not valid. */
int td_utf8_decode(const char *text, size_t length, uint32_t *code);

bool td_utf8_valid(const char *text, size_t length);

/* Valid, and without control codes. */
bool td_utf8_is_clean(const char *text);

/* Replaces bytes that are no UTF-8, and control codes, by '?' in place. */
void td_utf8_clean(char *text);

#endif
