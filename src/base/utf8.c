/* utf8.c: see utf8.h. */
#include "base/utf8.h"

#include <string.h>

int td_utf8_decode(const char *text, size_t length, uint32_t *code)
{
    const unsigned char *p = (const unsigned char *)text;
    if (length == 0)
        return 0;
    if (p[0] < 0x80) {
        *code = p[0];
        return 1;
    }
    int more = p[0] >= 0xf0 && p[0] < 0xf8 ? 3 : p[0] >= 0xe0 ? 2 : p[0] >= 0xc0 ? 1 : 0;
    if (more == 0 || p[0] >= 0xf8 || length < (size_t)more + 1)
        return 0;
    uint32_t value = p[0] & (0x3fu >> more);
    for (int i = 1; i <= more; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0;
        value = value << 6 | (p[i] & 0x3fu);
    }
    static const uint32_t least[] = {0, 0x80, 0x800, 0x10000};
    if (value < least[more] || value > 0x10ffff || (value >= 0xd800 && value < 0xe000))
        return 0;
    *code = value;
    return more + 1;
}

bool td_utf8_valid(const char *text, size_t length)
{
    uint32_t code;
    for (size_t at = 0; at < length;) {
        int step = td_utf8_decode(text + at, length - at, &code);
        if (step == 0)
            return false;
        at += (size_t)step;
    }
    return true;
}

/* Bytes at `text` that belong together; *bad: they are no UTF-8, or a control code. */
static size_t take(const char *text, size_t length, bool *bad)
{
    uint32_t code = 0;
    int step = td_utf8_decode(text, length, &code);
    *bad = step == 0 || code < 0x20 || (code >= 0x7f && code < 0xa0);
    return step ? (size_t)step : 1;
}

bool td_utf8_is_clean(const char *text)
{
    size_t length = strlen(text), at = 0;
    bool bad = false;
    while (at < length && !bad)
        at += take(text + at, length - at, &bad);
    return !bad;
}

void td_utf8_clean(char *text)
{
    size_t length = strlen(text);
    for (size_t at = 0, step; at < length; at += step) {
        bool bad;
        step = take(text + at, length - at, &bad);
        if (bad)
            memset(text + at, '?', step);
    }
}
