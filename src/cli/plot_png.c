/* plot_png.c: see plot_png.h. Drawn by cairo: a heatmap with a scale beside it, or a line. */
#include "cli/plot_png.h"

#include "base/library.h"
#include "cli/outfile.h"

#include <cairo.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { LEFT = 70, TOP = 40, RIGHT = 110, BOTTOM = 40, LEAST = 320, LINE_WIDTH = 1000, LINE_HEIGHT = 360 };

/* clang-format off */
#define CAIRO_CALLS(CALL) \
    CALL(cairo_, create) \
    CALL(cairo_, destroy) \
    CALL(cairo_, fill) \
    CALL(cairo_, image_surface_create) \
    CALL(cairo_, move_to) \
    CALL(cairo_, paint) \
    CALL(cairo_, rectangle) \
    CALL(cairo_, select_font_face) \
    CALL(cairo_, set_antialias) \
    CALL(cairo_, set_font_size) \
    CALL(cairo_, set_line_width) \
    CALL(cairo_, set_source_rgb) \
    CALL(cairo_, show_text) \
    CALL(cairo_, status) \
    CALL(cairo_, status_to_string) \
    CALL(cairo_, stroke) \
    CALL(cairo_, surface_destroy) \
    CALL(cairo_, surface_write_to_png_stream) \
    CALL(cairo_, text_extents)
/* clang-format on */

TD_LIBRARY_CALLS(cairo_calls, CAIRO_CALLS);

static struct cairo_calls cairo;
static struct td_library library = TD_LIBRARY(TD_SONAME_CAIRO, CAIRO_CALLS, &cairo);

/* Blue below zero, orange above, white in between; magenta for what is no number. */
static void set_shade(cairo_t *cr, double shade)
{
    double k = fmin(fabs(shade), 1);
    if (isnan(shade))
        cairo.set_source_rgb(cr, 0.85, 0.1, 0.85);
    else if (shade < 0)
        cairo.set_source_rgb(cr, 1 - 0.9 * k, 1 - 0.63 * k, 1 - 0.25 * k);
    else
        cairo.set_source_rgb(cr, 1 - 0.1 * k, 1 - 0.6 * k, 1 - 0.95 * k);
}

static void put_text(cairo_t *cr, double x, double y, const char *text)
{
    cairo.set_source_rgb(cr, 0.15, 0.15, 0.15);
    cairo.move_to(cr, x, y);
    cairo.show_text(cr, text);
}

/* Ends at x. */
static void put_text_before(cairo_t *cr, double x, double y, const char *text)
{
    cairo_text_extents_t extents;
    cairo.text_extents(cr, text, &extents);
    put_text(cr, x - extents.x_advance, y, text);
}

static void put_number(cairo_t *cr, double x, double y, double value)
{
    char text[32];
    snprintf(text, sizeof text, "%.4g", value);
    put_text(cr, x, y, text);
}

static void draw_cells(cairo_t *cr, const struct td_raster *r, double width, double height)
{
    cairo.set_antialias(cr, CAIRO_ANTIALIAS_NONE);
    for (int y = 0; y < r->rows; y++)
        for (int x = 0; x < r->columns; x++) {
            double left = floor(x * width / r->columns), top = floor(y * height / r->rows);
            set_shade(cr, td_raster_shade(r, td_cell_mean(td_raster_cell(r, y, x))));
            cairo.rectangle(cr, LEFT + left, TOP + top, ceil((x + 1) * width / r->columns) - left,
                            ceil((y + 1) * height / r->rows) - top);
            cairo.fill(cr);
        }
    cairo.set_antialias(cr, CAIRO_ANTIALIAS_DEFAULT);
}

static void draw_scale(cairo_t *cr, const struct td_raster *r, double width, double height)
{
    double x = LEFT + width + 20;
    if (r->faint > r->bright)
        return;
    for (int i = 0; i < (int)height; i++) {
        set_shade(cr, td_raster_shade(r, r->bright - (r->bright - r->faint) * i / height));
        cairo.rectangle(cr, x, TOP + i, 16, 1);
        cairo.fill(cr);
    }
    put_number(cr, x + 22, TOP + 10, r->bright);
    put_number(cr, x + 22, TOP + height, r->faint);
}

static void draw_line(cairo_t *cr, const struct td_raster *r, double width, double height)
{
    double span = r->high > r->low ? r->high - r->low : 1;
    for (int x = 0; x < r->columns; x++) {
        const struct td_cell *cell = td_raster_cell(r, 0, x);
        if (cell->finite == 0)
            continue;
        double top = TOP + height * (1 - (cell->high - r->low) / span);
        double bottom = TOP + height * (1 - (cell->low - r->low) / span);
        cairo.set_source_rgb(cr, 0.1, 0.37, 0.75);
        cairo.rectangle(cr, LEFT + x * width / r->columns, top, fmax(width / r->columns, 1),
                        fmax(bottom - top, 1.5));
        cairo.fill(cr);
    }
    if (r->low > r->high)
        return;
    put_number(cr, 6, TOP + 10, r->high);
    put_number(cr, 6, TOP + height, r->low);
}

static void draw(cairo_t *cr, const char *title, const struct td_raster *r, double width, double height)
{
    char text[64];
    cairo.set_source_rgb(cr, 1, 1, 1);
    cairo.paint(cr);
    cairo.select_font_face(cr, "sans-serif", CAIRO_FONT_SLANT_NORMAL, CAIRO_FONT_WEIGHT_NORMAL);
    cairo.set_font_size(cr, 13);
    put_text(cr, LEFT, TOP - 14, title);
    if (r->rows > 1) {
        draw_cells(cr, r, width, height);
        draw_scale(cr, r, width, height);
        put_text_before(cr, LEFT - 6, TOP + 10, "0");
        snprintf(text, sizeof text, "%" PRId64, r->height - 1);
        put_text_before(cr, LEFT - 6, TOP + height, text);
    } else if (r->rows == 1) {
        draw_line(cr, r, width, height);
    }
    cairo.set_source_rgb(cr, 0.6, 0.6, 0.6);
    cairo.set_line_width(cr, 1);
    cairo.rectangle(cr, LEFT - 0.5, TOP - 0.5, width + 1, height + 1);
    cairo.stroke(cr);
    put_text(cr, LEFT, TOP + height + 18, "0");
    snprintf(text, sizeof text, "%" PRId64, r->width - 1);
    put_text_before(cr, LEFT + width, TOP + height + 18, text);
}

static cairo_status_t write_bytes(void *context, const unsigned char *data, unsigned length)
{
    return fwrite(data, 1, length, context) == length ? CAIRO_STATUS_SUCCESS : CAIRO_STATUS_WRITE_ERROR;
}

/* Cells are at least a pixel; a small tensor gets large ones. */
static double size_of(int cells, int64_t most)
{
    return cells < LEAST ? cells * (double)((LEAST + cells - 1) / (cells > 0 ? cells : 1))
                         : (double)(cells < most ? cells : most);
}

tdbg_status plot_png(const char *path, const char *title, const struct td_raster *r, struct tdbg_error *error)
{
    TD_TRY(td_library_load(&library, error));
    struct outfile file;
    double width = r->rows > 1 ? size_of(r->columns, PLOT_PNG_COLUMNS) : LINE_WIDTH;
    double height = r->rows > 1 ? size_of(r->rows, PLOT_PNG_ROWS) : LINE_HEIGHT;
    cairo_surface_t *surface =
        cairo.image_surface_create(CAIRO_FORMAT_RGB24, LEFT + (int)width + RIGHT, TOP + (int)height + BOTTOM);
    cairo_t *cr = cairo.create(surface);
    draw(cr, title, r, width, height);
    tdbg_status status = cairo.status(cr) == CAIRO_STATUS_SUCCESS
                             ? outfile_open(&file, path, error)
                             : td_fail(error, TDBG_NOMEM, "%s", cairo.status_to_string(cairo.status(cr)));
    if (status == TDBG_OK) {
        cairo_status_t written = cairo.surface_write_to_png_stream(surface, write_bytes, file.file);
        if (written == CAIRO_STATUS_SUCCESS) {
            status = outfile_commit(&file, error);
        } else {
            status = td_fail(error, TDBG_IO, "cannot write: %s", cairo.status_to_string(written));
            outfile_discard(&file);
        }
    }
    cairo.destroy(cr);
    cairo.surface_destroy(surface);
    return status;
}
