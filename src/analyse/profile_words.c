/* profile_words.c: three digits and a unit: more says less. */
#include "analyse/profile_words.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>

struct unit {
    double size;
    const char *name;
};

static const char *in_units(char *out, double value, const struct unit *units, size_t count,
                            const char *suffix)
{
    size_t i = 0;
    while (i + 1 < count && fabs(value) < units[i].size * 0.9995)
        i++;
    double scaled = value / units[i].size;
    int digits = fabs(scaled) >= 99.95 || scaled == rint(scaled) ? 0 : fabs(scaled) >= 9.995 ? 1 : 2;
    snprintf(out, TD_WORDS, "%.*f%s%s%s", digits, scaled, *units[i].name || *suffix ? " " : "", units[i].name,
             suffix);
    return out;
}

#define IN_UNITS(out, value, units, suffix) \
    in_units(out, value, units, sizeof(units) / sizeof *(units), suffix)

const char *td_words_time(char out[TD_WORDS], double ns)
{
    static const struct unit units[] = {{1e9, "s"}, {1e6, "ms"}, {1e3, "us"}, {1, "ns"}};
    if (fabs(ns) < 0.5)
        return snprintf(out, TD_WORDS, "0"), out;
    return IN_UNITS(out, ns, units, "");
}

const char *td_words_rate(char out[TD_WORDS], double rate, const char *unit)
{
    static const struct unit units[] = {{1e15, "P"}, {1e12, "T"}, {1e9, "G"},
                                        {1e6, "M"},  {1e3, "k"},  {1, ""}};
    return IN_UNITS(out, rate, units, unit);
}

const char *td_words_count(char out[TD_WORDS], double count)
{
    return td_words_rate(out, count, "");
}

const char *td_words_bytes(char out[TD_WORDS], double bytes)
{
    static const struct unit units[] = {{0x1p50, "PiB"}, {0x1p40, "TiB"}, {0x1p30, "GiB"},
                                        {0x1p20, "MiB"}, {0x1p10, "KiB"}, {1, "B"}};
    return IN_UNITS(out, bytes, units, "");
}
