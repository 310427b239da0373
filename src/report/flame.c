/* flame.c: see flame.h.
 *
 *     +-------------------------------------------+
 *     | all                                       |   a scope is as wide as its time,
 *     +-----------------------------+-------------+   what it calls lies below it,
 *     | model                       | load        |   in the order of the first call
 *     +-------------+---------------+-------------+
 *     | layers.0    | layers.1      |
 *
 * Scopes of one family (layers.0, layers.1) have one colour. Frames thinner than a third of a pixel are left
 * out. Each frame carries its share of the width as data, from which the script draws it anew when one is
 * made the whole; without a script the picture is complete.
 */
#include "report/flame.h"

#include "analyse/profile_words.h"
#include "report/flame_script.h"
#include "report/markup.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

enum { WIDTH = 1200, MARGIN = 10, ROW = 20, TOP = 46, FOOT = 30, LEVELS = 200 };

static const double least = 1.0 / 3; /* pixels */

/* --- Colours -------------------------------------------------------------------------------------------- */

/* Hues apart enough to tell, light enough for dark text. */
static void put_colour(FILE *out, const char *name, bool device)
{
    uint32_t h = 2166136261u;
    for (const char *p = name; *p; p++)
        if (*p < '0' || *p > '9')
            h = (h ^ (uint8_t)*p) * 16777619u;
    h ^= h >> 15;
    unsigned hue = device ? 190 + h % 60 : (h % 75 + 360 - 15) % 360;
    fprintf(out, "hsl(%u,%u%%,%u%%)", hue, 62 + h / 97 % 20, 66 + h / 1031 % 12);
}

/* --- Frames --------------------------------------------------------------------------------------------- */

struct flame {
    FILE *out;
    const struct td_profile *p;
    double whole; /* nanoseconds of the full width */
};

/* "layers.0.mlp" within "layers.0" is ".mlp" where there is no room for more. */
static const char *short_name(const struct flame *f, uint32_t node)
{
    const char *name = td_profile_name_of(f->p, node);
    uint32_t above = f->p->nodes[node].parent;
    if (above == TD_PROFILE_ROOT)
        return name;
    const char *outer = td_profile_name_of(f->p, above);
    size_t length = strlen(outer);
    return strncmp(name, outer, length) == 0 && name[length] == '.' ? name + length : name;
}

/* As much of the text as fits, in a font of 7 pixels a character. Only ASCII is cut within. */
static void put_label(FILE *out, const char *name, const char *brief, double width)
{
    size_t room = width > 14 ? (size_t)((width - 6) / 7) : 0, length = 0;
    name = strlen(name) <= room ? name : brief;
    while (name[length] && (uint8_t)name[length] < 0x80)
        length++;
    if (name[length] || length <= room) {
        if (room >= 3 || length <= room)
            td_markup_text(out, name);
        return;
    }
    char cut[256];
    if (room >= 3) {
        snprintf(cut, sizeof cut, "%.*s..", (int)(room - 2 < 250 ? room - 2 : 250), name);
        td_markup_text(out, cut);
    }
}

static void put_frame(const struct flame *f, uint32_t node, double begin, uint32_t level)
{
    const struct td_profile_node *n = &f->p->nodes[node];
    const char *name = node == TD_PROFILE_ROOT ? "all" : td_profile_name_of(f->p, node);
    double time = node == TD_PROFILE_ROOT ? f->whole : (double)n->total_ns;
    double x = begin / f->whole, w = time / f->whole, wide = w * (WIDTH - 2 * MARGIN);
    char total[TD_WORDS], self[TD_WORDS];
    if (wide < least)
        return;
    fprintf(f->out, "<g class=\"f\" data-x=\"%.9g\" data-w=\"%.9g\" data-l=\"%u\"><title>", x, w, level);
    td_markup_text(f->out, name);
    fprintf(f->out, "\n%s, %.2f %%", td_words_time(total, time), 100 * w);
    if (node != TD_PROFILE_ROOT)
        fprintf(f->out, "\nself %s, %llu calls", td_words_time(self, (double)n->self_ns),
                (unsigned long long)n->calls);
    fprintf(f->out, "</title><rect x=\"%.2f\" y=\"%u\" width=\"%.2f\" height=\"%d\" fill=\"",
            MARGIN + x * (WIDTH - 2 * MARGIN), TOP + level * ROW, wide, ROW - 1);
    put_colour(f->out, name, n->device);
    fprintf(f->out, "\"/><text x=\"%.2f\" y=\"%u\" data-t=\"", MARGIN + x * (WIDTH - 2 * MARGIN) + 3,
            TOP + level * ROW + 14);
    td_markup_text(f->out, name);
    fputs("\" data-s=\"", f->out);
    td_markup_text(f->out, node == TD_PROFILE_ROOT ? name : short_name(f, node));
    fputs("\">", f->out);
    put_label(f->out, name, node == TD_PROFILE_ROOT ? name : short_name(f, node), wide);
    fputs("</text></g>\n", f->out);
}

/* Depth first; `begins` holds where the next child of each open level begins. */
static void put_tree(const struct flame *f)
{
    double begins[LEVELS + 2] = {0};
    uint32_t node = TD_PROFILE_ROOT, level = 0;
    put_frame(f, node, 0, 0);
    for (bool down = true;;) {
        const struct td_profile_node *n = &f->p->nodes[node];
        if (down && n->first && level < LEVELS) {
            begins[level + 1] = level ? begins[level] - (double)n->total_ns : 0;
            node = n->first;
            level++;
        } else if (node != TD_PROFILE_ROOT && n->next) {
            node = n->next;
        } else if (node == TD_PROFILE_ROOT || n->parent == TD_PROFILE_ROOT) {
            return;
        } else {
            node = n->parent;
            level--;
            down = false;
            continue;
        }
        put_frame(f, node, begins[level], level);
        begins[level] += (double)f->p->nodes[node].total_ns;
        down = true;
    }
}

static unsigned deepest(const struct td_profile *p)
{
    unsigned depth = 0;
    for (uint32_t i = 1; i < p->node_count; i++)
        depth = p->nodes[i].depth + 1 > depth ? p->nodes[i].depth + 1 : depth;
    return depth < LEVELS ? depth : LEVELS;
}

void td_flame_svg(FILE *out, const struct td_profile *p, const char *title)
{
    struct flame f = {out, p, fmax(1, (double)p->nodes[TD_PROFILE_ROOT].total_ns)};
    unsigned height = TOP + (deepest(p) + 1) * ROW + FOOT;
    char whole[TD_WORDS];
    fprintf(out,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%u\" viewBox=\"0 0 %d %u\">\n"
            "<style>text{font:12px ui-monospace,Menlo,Consolas,monospace;fill:#1b1b1b}"
            ".h{font:600 16px system-ui,sans-serif}.n{font:12px system-ui,sans-serif;fill:#555}"
            ".f rect{stroke:#fff;stroke-width:.6}.f text{pointer-events:none}.f{cursor:pointer}.f:hover "
            "rect{stroke:#222;stroke-width:1}"
            ".o rect{opacity:.45}</style>\n"
            "<rect id=\"ground\" width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n<text class=\"h\" "
            "x=\"%d\" y=\"22\">",
            WIDTH, height, WIDTH, height, MARGIN);
    td_markup_text(out, title);
    fprintf(out,
            "</text>\n<text class=\"n\" x=\"%d\" y=\"39\">%s of thread time; a scope is as wide as its time. "
            "Click to zoom, click the ground to return.</text>\n",
            MARGIN, td_words_time(whole, f.whole));
    put_tree(&f);
    fprintf(out,
            "<text class=\"n\" id=\"told\" x=\"%d\" "
            "y=\"%u\"></text>\n<script><![CDATA[\n%s]]></script>\n</svg>\n",
            MARGIN, height - 10, td_flame_script);
}

/* --- Collapsed stacks ----------------------------------------------------------------------------------- */

/* ';' and line ends are the format's own. */
static void put_plain(FILE *out, const char *name)
{
    for (; *name; name++)
        putc(*name == ';' ? ',' : *name == '\n' || *name == '\r' ? ' ' : *name, out);
}

void td_flame_collapsed(FILE *out, const struct td_profile *p)
{
    uint32_t way[LEVELS];
    for (uint32_t i = 1; i < p->node_count; i++) {
        size_t depth = 0;
        if (p->nodes[i].self_ns <= 0)
            continue;
        for (uint32_t node = i; node != TD_PROFILE_ROOT && depth < LEVELS; node = p->nodes[node].parent)
            way[depth++] = node;
        while (depth-- > 0) {
            put_plain(out, td_profile_name_of(p, way[depth]));
            putc(depth ? ';' : ' ', out);
        }
        fprintf(out, "%lld\n", (long long)p->nodes[i].self_ns);
    }
}
