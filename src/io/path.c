/* path.c: see path.h. */
#include "io/path.h"

#include "base/utf8.h"

#include <string.h>

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Compares two runs of digits as numbers of any length and steps over them. */
static int compare_numbers(const char **a, const char **b)
{
    const char *p = *a, *q = *b;
    while (*p == '0')
        p++;
    while (*q == '0')
        q++;
    size_t m = 0, n = 0;
    while (is_digit(p[m]))
        m++;
    while (is_digit(q[n]))
        n++;
    *a = p + m;
    *b = q + n;
    if (m != n)
        return m < n ? -1 : 1;
    return memcmp(p, q, m);
}

int td_path_compare(const char *a, const char *b)
{
    const char *p = a, *q = b;
    while (*p && *q) {
        if (is_digit(*p) && is_digit(*q)) {
            int order = compare_numbers(&p, &q);
            if (order != 0)
                return order;
        } else if (*p != *q) {
            return (unsigned char)*p < (unsigned char)*q ? -1 : 1;
        } else {
            p++;
            q++;
        }
    }
    if (*p || *q)
        return *p ? 1 : -1;
    return strcmp(a, b);
}

bool td_path_hidden(const char *path)
{
    for (const char *part = path; part; part = strchr(part, '/')) {
        part += *part == '/';
        size_t length = strcspn(part, "/");
        bool dots = length <= 2 && strncmp(part, "..", length) == 0; /* "." and ".." hide nothing */
        if (*part == '.' && !dots)
            return true;
        if (length == 8 && memcmp(part, "__MACOSX", 8) == 0)
            return true;
    }
    return false;
}

const char *td_path_base(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

char *td_path_clean(struct td_arena *arena, const char *name, size_t length)
{
    char *clean = td_arena_strndup(arena, name, length);
    if (!clean)
        return NULL;
    for (size_t i = 0; i < length; i++)
        clean[i] = clean[i] == '\\' ? '/' : clean[i] == 0 ? '?' : clean[i];
    td_utf8_clean(clean);
    while (clean[0] == '/' || (clean[0] == '.' && clean[1] == '/'))
        clean += clean[0] == '/' ? 1 : 2;
    return clean;
}

bool td_path_is_inner(const char *name)
{
    if (name[0] == '/' || name[0] == 0)
        return false;
    for (const char *part = name; part; part = strchr(part, '/')) {
        part += *part == '/';
        if (strncmp(part, "..", 2) == 0 && (part[2] == '/' || part[2] == 0))
            return false;
    }
    return true;
}

char *td_path_beside(struct td_arena *arena, const char *from, const char *name)
{
    while (name[0] == '.' && name[1] == '/')
        name += 2;
    return td_arena_printf(arena, "%.*s%s", (int)(td_path_base(from) - from), from, name);
}

bool td_path_is_under(const char *folder, const char *path)
{
    size_t length = strlen(folder);
    if (strcmp(folder, "/") == 0)
        return true;
    return strncmp(path, folder, length) == 0 && (path[length] == '/' || !path[length]);
}
