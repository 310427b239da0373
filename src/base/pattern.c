/* pattern.c: see pattern.h. */
#include "base/pattern.h"

#include "base/limits.h"

#include <fnmatch.h>
#include <string.h>

/* At "[", digits, "]". */
static bool is_index(const char *at)
{
    size_t digits = *at == '[' ? strspn(at + 1, "0123456789") : 0;
    return digits && at[1 + digits] == ']';
}

/* The pattern with its indices taken literally. False: it has none. */
static bool quote_indices(const char *pattern, char *out, size_t size)
{
    bool any = false;
    size_t used = 0;
    for (; *pattern && used + 3 <= size; pattern++) {
        if (is_index(pattern)) {
            out[used++] = '\\';
            any = true;
        }
        out[used++] = *pattern;
    }
    out[used] = 0;
    return any && !*pattern;
}

bool td_pattern_fits(const char *pattern, const char *name)
{
    char quoted[2 * TD_MAX_NAME];
    return strcmp(pattern, name) == 0 || fnmatch(pattern, name, 0) == 0 ||
           (strchr(pattern, '[') && quote_indices(pattern, quoted, sizeof quoted) &&
            fnmatch(quoted, name, 0) == 0);
}
