/* tree.h: names, found again by their text and where they stand: the scopes of a program, and its tensors.
 *
 * A node never moves and its name, parent and hash never change, so that one thread may add nodes while
 * another follows the pointers it was given. The fields below the line belong to whoever the comment says.
 */
#ifndef TD_RECORD_TREE_H
#define TD_RECORD_TREE_H

#include "base/arena.h"

#include <stdint.h>

struct td_node {
    struct td_node *parent; /* NULL at the top */
    const char *name;
    uint64_t hash;
    /* the writer's: its own node for this one, and the scope's number in the index */
    struct td_node *twin;
    uint32_t scope;
    /* the adding thread's: which rules of the capture with this generation fit the name */
    uint32_t generation;
    uint64_t rules;
    /* for whoever counts: how often the name was seen, and when the counting began */
    uint64_t seen, since;
};

struct td_tree {
    struct td_arena arena;
    struct td_node **slots; /* open addressing, a power of two */
    size_t capacity, count;
};

void td_tree_init(struct td_tree *tree);
void td_tree_release(struct td_tree *tree);

/* The node of this name below `parent`, made if need be; NULL without memory. Of a name longer than
 * TD_MAX_NAME the first bytes count. */
struct td_node *td_tree_child(struct td_tree *tree, struct td_node *parent, const char *name);

#endif
