/* bundle.h: the inside of a bundle, shared by the files that fill one (folder.c, archive.c, tar.c).
 *
 * Filling a bundle is adding members; opening a member is the same for all of them (source.c). A member is
 * one of five things, and that says where its bytes come from when somebody asks:
 *
 *     FILE    a path on disk               mapped
 *     BYTES   a range already in memory    as it is
 *     ZIPPED  a member of the zip          in place, or inflated into scratch when it was not before
 *     LINK    another member               resolved by whoever lists, before anybody asks
 *     BAD     nothing: a reason
 */
#ifndef TD_IO_BUNDLE_H
#define TD_IO_BUNDLE_H

#include "base/arena.h"
#include "io/map.h"
#include "io/source.h"
#include "io/spill.h"
#include "io/zip.h"

enum td_member_kind { TD_MEMBER_FILE, TD_MEMBER_BYTES, TD_MEMBER_ZIPPED, TD_MEMBER_LINK, TD_MEMBER_BAD };

struct td_member {
    const char *name;
    enum td_member_kind kind;
    tdbg_status status; /* BAD */
    union {
        const char *path;                   /* FILE */
        const uint8_t *data;                /* BYTES */
        const struct td_zip_member *zipped; /* ZIPPED */
        const char *target;                 /* LINK: a member's name; NULL: outside */
        const char *reason;                 /* BAD */
    };
    size_t size;                    /* BYTES */
    int64_t written;                /* FILE: as in td_source */
    const struct td_source *source; /* NULL until opened */
};

/* A source and what holds its bytes. */
struct td_opened {
    struct td_source source;
    struct td_map map;
    const char *path; /* of a file on disk, else NULL */
    struct td_opened *next;
};

struct td_bundle {
    struct td_arena arena; /* names, reasons, opened sources */
    struct td_member *members;
    size_t count, capacity;
    uint32_t *by_name; /* indices of members by name and then by index; made when first needed */
    struct td_opened *opened;
    struct td_zip zip;
    struct td_budget budget; /* used by the outermost bundle of an input */
    struct td_spill spill;
    const char *plain;            /* path of the plain file this bundle stands for, or NULL */
    bool is_plain;                /* a file or bytes in memory, as a bundle of one */
    const struct td_bound *bound; /* of the files on disk; NULL: none */
    const char *top, *base;       /* with a bound: what was opened, and the folder that it is or is in */
};

/* Where a file or folder really is, to be freed. UNSUPPORTED when the bound does not hold it. */
TD_CHECK tdbg_status td_bundle_resolve(const struct td_bundle *bundle, const char *path, char **out,
                                       struct tdbg_error *error);

/* `within`: the bundle that holds the archive, or NULL for an outermost one. */
TD_CHECK tdbg_status td_bundle_make(struct td_bundle **out, struct td_bundle *within,
                                    struct tdbg_error *error);

/* Adds a member whose name and reason or path already live in the bundle's arena. */
TD_CHECK tdbg_status td_bundle_add(struct td_bundle *bundle, struct td_member member,
                                   struct tdbg_error *error);

/* Adds a member that cannot be opened. The reason is copied; `name` lives in the arena. */
TD_CHECK tdbg_status td_bundle_add_bad(struct td_bundle *bundle, const char *name, tdbg_status status,
                                       const char *reason, struct tdbg_error *error);

/* Makes the index by name; members must not be added afterwards. */
TD_CHECK tdbg_status td_bundle_sort(struct td_bundle *bundle, struct tdbg_error *error);

/* The first member of that name that is not BAD, or a BAD one, or NULL. Needs the index. */
struct td_member *td_bundle_find(const struct td_bundle *bundle, const char *name);

/* Fills the bundle with the files under the folder. */
TD_CHECK tdbg_status td_folder_list(struct td_bundle *bundle, const char *path, struct td_job *job,
                                    struct tdbg_error *error);

#endif
