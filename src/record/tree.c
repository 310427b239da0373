/* tree.c: see tree.h. */
#include "record/tree.h"

#include "base/limits.h"

#include <stdlib.h>
#include <string.h>

/* Names of one thread: more than this is a program that makes up names without end. */
enum { MOST = 1 << 28 };

void td_tree_init(struct td_tree *tree)
{
    *tree = (struct td_tree){0};
    td_arena_init(&tree->arena, MOST);
}

void td_tree_release(struct td_tree *tree)
{
    free(tree->slots);
    td_arena_release(&tree->arena);
    tree->slots = NULL;
}

static uint64_t hash_of(const struct td_node *parent, const char *name, size_t length)
{
    uint64_t hash = parent ? parent->hash : UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)name[i]) * UINT64_C(0x100000001b3);
    return hash ^ hash >> 32;
}

static struct td_node **slot_of(struct td_node **slots, size_t capacity, const struct td_node *parent,
                                const char *name, size_t length, uint64_t hash)
{
    size_t at = hash & (capacity - 1);
    for (;; at = (at + 1) & (capacity - 1)) {
        const struct td_node *n = slots[at];
        if (!n || (n->hash == hash && n->parent == parent && strncmp(n->name, name, length) == 0 &&
                   n->name[length] == 0))
            return &slots[at];
    }
}

static bool grow(struct td_tree *tree)
{
    size_t capacity = tree->capacity ? 2 * tree->capacity : 256;
    struct td_node **slots = calloc(capacity, sizeof *slots);
    if (!slots)
        return false;
    for (size_t i = 0; i < tree->capacity; i++) {
        struct td_node *n = tree->slots[i];
        if (n)
            *slot_of(slots, capacity, n->parent, n->name, strlen(n->name), n->hash) = n;
    }
    free(tree->slots);
    tree->slots = slots;
    tree->capacity = capacity;
    return true;
}

struct td_node *td_tree_child(struct td_tree *tree, struct td_node *parent, const char *name)
{
    if (2 * tree->count >= tree->capacity && !grow(tree))
        return NULL;
    size_t length = strnlen(name, TD_MAX_NAME);
    uint64_t hash = hash_of(parent, name, length);
    struct td_node **slot = slot_of(tree->slots, tree->capacity, parent, name, length, hash);
    if (*slot)
        return *slot;
    struct td_node *n = td_arena_alloc(&tree->arena, sizeof *n);
    char *copy = n ? td_arena_strndup(&tree->arena, name, length) : NULL;
    if (!copy)
        return NULL;
    n->parent = parent;
    n->name = copy;
    n->hash = hash;
    tree->count++;
    return *slot = n;
}
