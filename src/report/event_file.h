/* event_file.h: one event file of TensorBoard: scalars and histograms, each with its step and time.
 *
 *     struct td_event_file events;
 *     td_event_file_init(&events, file);
 *     td_event_scalar(&events, moment, "loss", 1.5);
 *     bool written = td_event_file_finish(&events);
 *
 * The error is sticky, as that of the JSON writer: ask once, at the end.
 */
#ifndef TD_REPORT_EVENT_FILE_H
#define TD_REPORT_EVENT_FILE_H

#include "base/buffer.h"

#include <stdint.h>
#include <stdio.h>

struct td_event_file {
    FILE *file;
    struct td_buffer packed;
    bool failed;
};

struct td_event_moment {
    double wall_time; /* seconds since 1970 */
    int64_t step;
};

/* Writes the event that opens every file. */
void td_event_file_init(struct td_event_file *out, FILE *file, double wall_time);

/* Releases; false when anything failed (errno says what, unless memory ran out). */
bool td_event_file_finish(struct td_event_file *events);

void td_event_scalar(struct td_event_file *events, struct td_event_moment at, const char *tag, double value);

/* `edges` are bins + 1. */
void td_event_histogram(struct td_event_file *events, struct td_event_moment at, const char *tag,
                        const double *edges, const uint64_t *counts, size_t bins);

#endif
