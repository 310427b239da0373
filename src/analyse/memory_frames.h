/* memory_frames.h: call stacks in a snapshot of PyTorch's allocator, each given a number and a name once.
 *
 * Every block and every event has a list of frames, and a snapshot has millions of them; but the frames are
 * few and so are the stacks. A frame is known by its place in the graph first, which costs one probe, and by
 * what it says where a writer did not share it.
 */
#ifndef TD_ANALYSE_MEMORY_FRAMES_H
#define TD_ANALYSE_MEMORY_FRAMES_H

#include "analyse/memory_story.h"
#include "pickle/pickle.h"

/* Numbers by a key that is not 0. */
struct td_number_map {
    struct {
        uint64_t key;
        uint32_t value;
    } * slots;
    size_t capacity, count;
};

struct td_frames {
    struct td_arena *arena; /* of the texts; borrowed */
    struct td_number_map by_place, by_content, stacks;
    const struct td_pickle_value **frames; /* by number */
    size_t frame_count, frame_capacity;
    struct td_memory_label *labels; /* by owner; number 0 has no frames */
    size_t label_count, label_capacity;
};

TD_CHECK tdbg_status td_frames_init(struct td_frames *f, struct td_arena *arena, struct tdbg_error *error);
void td_frames_release(struct td_frames *f);

/* The owner that a list of frames stands for; whatever is no such list is owner 0. */
TD_CHECK tdbg_status td_frames_owner(struct td_frames *f, const struct td_pickle_value *list, uint32_t *owner,
                                     struct tdbg_error *error);

#endif
