/* memory_story.h: reports with names: what `tdbg memory` shows, whatever it was made from.
 *
 * A story is one stretch of memory with one history: a process, a rank, a device. A book is all of them that
 * one source told, the one with the highest peak first.
 */
#ifndef TD_ANALYSE_MEMORY_STORY_H
#define TD_ANALYSE_MEMORY_STORY_H

#include "analyse/memory.h"
#include "base/arena.h"
#include "base/job.h"

struct td_memory_label {
    const char *name;  /* "load_layer (model.c:31)", "step/layers.0" */
    const char *stack; /* frames, the innermost first, one per line; NULL where there is none */
};

struct td_memory_story {
    const char *title; /* "train (pid 4711)", "rank 0", "device 0" */
    const char *note;  /* what a reader should know of it; NULL */
    bool judged;       /* what is held at the end was never given back; else it was just held then */
    struct td_memory_report report;
    struct td_memory_label *labels; /* of each group of the report */
    struct td_arena arena;          /* of all texts */
};

struct td_memory_book {
    struct td_memory_story *stories;
    size_t count;
    uint64_t others;       /* processes too many to be kept, or that found no place */
    int status;            /* as waitpid tells it, of a program that was started */
    struct td_arena texts; /* that several stories share; without a limit until it is needed */
};

/* Which snapshots to compare; both or none. */
struct td_memory_wish {
    const char *from, *to;
};

void td_memory_story_init(struct td_memory_story *s);

/* Closes the account: labels[owner] of each owner (in the arena of the story) become groups by their name. */
TD_CHECK tdbg_status td_memory_story_finish(struct td_memory_story *s, struct td_memory *memory,
                                            const struct td_memory_label *labels, int64_t end_ns,
                                            struct tdbg_error *error);
void td_memory_story_release(struct td_memory_story *s);

/* Takes the story over, on success only; `most` stories stay, those with the highest peaks. */
TD_CHECK tdbg_status td_memory_book_add(struct td_memory_book *book, struct td_memory_story *story,
                                        size_t most, struct tdbg_error *error);
void td_memory_book_sort(struct td_memory_book *book);
void td_memory_book_release(struct td_memory_book *book);

/* Something in it is worth a look: a leak, or fragmentation. */
bool td_memory_story_found(const struct td_memory_story *s);

/* memory_program.c: starts the program with the allocator shim in front and follows it to its end. */
TD_CHECK tdbg_status td_memory_watch(struct td_memory_book *book, char *const *arguments, const char *shim,
                                     const struct td_memory_wish *wish, struct tdbg_error *error);

/* memory_run.c: a recorded run, or a folder of ranks, by scope. */
TD_CHECK tdbg_status td_memory_read_run(struct td_memory_book *book, const char *path,
                                        const struct td_memory_wish *wish, struct tdbg_error *error);

/* memory_snapshot.c: a snapshot of PyTorch's CUDA allocator, device by device, by call stack. */
TD_CHECK tdbg_status td_memory_read_snapshot(struct td_memory_book *book, const char *path,
                                             const struct td_memory_wish *wish, struct td_job *job,
                                             struct tdbg_error *error);

/* The same, of bytes in memory. */
TD_CHECK tdbg_status td_memory_read_pickle(struct td_memory_book *book, const void *data, size_t size,
                                           const struct td_memory_wish *wish, struct td_job *job,
                                           struct tdbg_error *error);

/* Either of the two that are read from disk, whatever `path` is. */
TD_CHECK tdbg_status td_memory_read(struct td_memory_book *book, const char *path,
                                    const struct td_memory_wish *wish, struct td_job *job,
                                    struct tdbg_error *error);

#endif
