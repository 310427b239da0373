/* memory_symbols.c: see memory_symbols.h. elfutils reads symbol tables and DWARF; names of C++ are made
 * readable by the C++ library where the machine has it. */
#include "analyse/memory_symbols.h"

#include "base/buffer.h"

#include <dlfcn.h>
#include <dwarf.h>
#include <elfutils/libdwfl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FRAME_TEXT = 512, STACK_TEXT = 128 << 10 };

/* A function on the stack; one that was inlined has no address of its own. */
struct frame {
    char function[FRAME_TEXT / 2], place[FRAME_TEXT / 2]; /* place: "file.c:12", or the library's name */
    bool library; /* of a header of the C++ library: as its templates become part of a program */
};

/* Looking a symbol up walks through all of its file, and stacks share most of their frames: each pc is looked
 * up once. */
struct known_pc {
    uint64_t pc;
    size_t count;
    struct frame *frames;
};

struct td_symbols {
    Dwfl *dwfl;
    const struct td_shim_module *modules;
    size_t count;
    struct known_pc *known;
    size_t known_count;
    void *cxx;
    char *(*demangle)(const char *, char *, size_t *, int *);
};

/* Debugging information of its own file only: looking elsewhere may ask a server. */
static int no_other_file(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base,
                         const char *file, const char *link, GElf_Word sum, char **found)
{
    (void)module, (void)data, (void)name, (void)base, (void)file, (void)link, (void)sum, (void)found;
    return -1;
}

static const Dwfl_Callbacks callbacks = {
    .find_elf = dwfl_build_id_find_elf,
    .find_debuginfo = no_other_file,
    .section_address = dwfl_offline_section_address,
};

tdbg_status td_symbols_open(struct td_symbols **out, const struct td_shim_module *modules, size_t count,
                            struct tdbg_error *error)
{
    struct td_symbols *s = calloc(1, sizeof *s);
    if (!s)
        return td_fail_nomem(error);
    s->modules = modules;
    s->count = count;
    s->dwfl = dwfl_begin(&callbacks);
    if (!s->dwfl) {
        free(s);
        return td_fail_nomem(error);
    }
    dwfl_report_begin(s->dwfl);
    for (size_t i = 0; i < count; i++) /* a file that is gone just has no names */
        (void)dwfl_report_elf(s->dwfl, modules[i].path, modules[i].path, -1, modules[i].base, true);
    dwfl_report_end(s->dwfl, NULL, NULL);
    s->cxx = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_LOCAL);
    if (s->cxx)
        *(void **)&s->demangle = dlsym(s->cxx, "__cxa_demangle");
    *out = s;
    return TDBG_OK;
}

void td_symbols_close(struct td_symbols **symbols)
{
    struct td_symbols *s = *symbols;
    *symbols = NULL;
    if (!s)
        return;
    dwfl_end(s->dwfl);
    for (size_t i = 0; i < s->known_count; i++)
        free(s->known[i].frames);
    free(s->known);
    if (s->cxx)
        dlclose(s->cxx);
    free(s);
}

static const struct td_shim_module *module_of(const struct td_symbols *s, uint64_t pc)
{
    for (size_t i = 0; i < s->count; i++)
        if (pc >= s->modules[i].start && pc < s->modules[i].end)
            return &s->modules[i];
    return NULL;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* C and C++ runtime: nobody looks for his leak in strdup or operator new. */
static bool is_runtime(const struct td_shim_module *module)
{
    static const char *const names[] = {"libc.so", "libstdc++.so", "libc++", "ld-linux", "ld-musl"};
    for (size_t i = 0; module && i < sizeof names / sizeof *names; i++)
        if (strncmp(base_name(module->path), names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

/* --- Frames --------------------------------------------------------------------------------------------- */

enum { MOST_INLINED = 8 };

static void put_name(struct td_symbols *s, const char *name, uint64_t pc, struct frame *out)
{
    char *readable = NULL;
    int code = -1;
    if (name && s->demangle && strncmp(name, "_Z", 2) == 0)
        readable = s->demangle(name, NULL, NULL, &code);
    if (readable && code == 0)
        snprintf(out->function, sizeof out->function, "%s", readable);
    else if (name)
        snprintf(out->function, sizeof out->function, "%s", name);
    else
        snprintf(out->function, sizeof out->function, "%#llx", (unsigned long long)pc);
    free(readable);
}

static void put_line(struct frame *out, const char *file, int line)
{
    snprintf(out->place, sizeof out->place, "%.200s:%d", base_name(file), line);
    out->library = strstr(file, "/include/c++/") != NULL;
}

/* Where the inlined function was called, as the compiler noted it. */
static void put_call(struct frame *out, Dwarf_Die *unit, Dwarf_Die *inlined)
{
    Dwarf_Attribute attribute;
    Dwarf_Word line = 0, number = 0;
    Dwarf_Files *files = NULL;
    (void)dwarf_formudata(dwarf_attr(inlined, DW_AT_call_line, &attribute), &line);
    (void)dwarf_formudata(dwarf_attr(inlined, DW_AT_call_file, &attribute), &number);
    const char *file =
        dwarf_getsrcfiles(unit, &files, NULL) == 0 ? dwarf_filesrc(files, number, NULL, NULL) : NULL;
    if (file)
        put_line(out, file, (int)line);
}

/* All that surrounds pc, the innermost first; to be freed. Of an inlined function elfutils gives the scopes
 * around its definition; those around the place where it was inlined are found from there. */
static int scopes_at(Dwarf_Die *unit, Dwarf_Addr pc, Dwarf_Die **out)
{
    Dwarf_Die *innermost = NULL;
    int count = dwarf_getscopes(unit, pc, &innermost);
    if (count > 0)
        count = dwarf_getscopes_die(&innermost[0], out);
    free(innermost);
    return count;
}

/* frames[0] is filled as if nothing were inlined; pushes it outwards by the functions inlined at pc. */
static size_t put_inlined(Dwfl_Module *module, uint64_t pc, struct frame *frames)
{
    Dwarf_Addr bias = 0;
    Dwarf_Die *unit = dwfl_module_addrdie(module, pc, &bias), *scopes = NULL;
    int count = unit ? scopes_at(unit, pc - bias, &scopes) : 0;
    size_t n = 1;
    for (int i = 0; i < count && n < MOST_INLINED; i++) {
        const char *name = dwarf_diename(&scopes[i]);
        if (dwarf_tag(&scopes[i]) != DW_TAG_inlined_subroutine || !name)
            continue;
        frames[n] = frames[n - 1];
        snprintf(frames[n - 1].function, sizeof frames->function, "%s", name);
        put_call(&frames[n], unit, &scopes[i]);
        n++;
    }
    free(scopes);
    return n;
}

/* What stands at pc, the innermost first. Returns how many: one, and what was inlined there. */
static size_t find_frames(struct td_symbols *s, uint64_t pc, struct frame frames[MOST_INLINED])
{
    const struct td_shim_module *file = module_of(s, pc);
    Dwfl_Module *module = file ? dwfl_addrmodule(s->dwfl, pc) : NULL;
    Dwfl_Line *line = module ? dwfl_module_getsrc(module, pc) : NULL;
    int number = 0;
    frames[0] = (struct frame){0};
    const char *source = line ? dwfl_lineinfo(line, NULL, &number, NULL, NULL, NULL) : NULL;
    put_name(s, module ? dwfl_module_addrname(module, pc) : NULL, pc, &frames[0]);
    if (!source) {
        snprintf(frames[0].place, sizeof frames[0].place, "%.200s", file ? base_name(file->path) : "no file");
        return 1;
    }
    put_line(&frames[0], source, number);
    return put_inlined(module, pc, frames);
}

static const struct known_pc *name_frames(struct td_symbols *s, uint64_t pc)
{
    struct frame frames[MOST_INLINED];
    for (size_t i = 0; i < s->known_count; i++)
        if (s->known[i].pc == pc)
            return &s->known[i];
    struct known_pc *larger = realloc(s->known, (s->known_count + 1) * sizeof *larger);
    if (!larger)
        return NULL;
    s->known = larger;
    struct known_pc *known = &s->known[s->known_count];
    *known = (struct known_pc){.pc = pc, .count = find_frames(s, pc, frames)};
    known->frames = malloc(known->count * sizeof *known->frames);
    if (!known->frames)
        return NULL;
    memcpy(known->frames, frames, known->count * sizeof *known->frames);
    s->known_count++;
    return known;
}

/* --- Labels --------------------------------------------------------------------------------------------- */

enum { NAMED_FRAMES = 3 }; /* a wrapper, who calls it, and who calls that */

struct naming {
    struct td_buffer name, stack;
    int named;
    bool ended; /* what called main is of no interest */
};

static void add_frame(struct naming *n, const struct frame *frame, bool runtime)
{
    if (n->ended)
        return;
    td_buffer_printf(&n->stack, "%s%s (%s)", n->stack.size ? "\n" : "", frame->function, frame->place);
    if (!runtime && !frame->library && n->named < NAMED_FRAMES)
        td_buffer_printf(&n->name, "%s%s (%s)", n->named++ ? " < " : "", frame->function, frame->place);
    n->ended = strcmp(frame->function, "main") == 0;
}

static const char *first_line(struct td_arena *arena, const char *text)
{
    return td_arena_strndup(arena, text, strcspn(text, "\n"));
}

bool td_symbols_label(struct td_symbols *s, const struct td_shim_site *site, struct td_arena *arena,
                      struct td_memory_label *out)
{
    struct naming n = {0};
    td_buffer_init(&n.name, STACK_TEXT);
    td_buffer_init(&n.stack, STACK_TEXT);
    for (uint32_t i = 0; i < site->depth && i < TD_SHIM_FRAMES; i++) {
        uint64_t pc = site->pc[i] - 1; /* within the call */
        bool runtime = is_runtime(module_of(s, pc));
        const struct known_pc *known = name_frames(s, pc);
        for (size_t k = 0; known && k < known->count; k++)
            add_frame(&n, &known->frames[k], runtime);
    }
    if (n.stack.size == 0)
        td_buffer_puts(&n.stack, "unknown");
    out->stack = td_arena_strdup(arena, td_buffer_text(&n.stack));
    out->name = n.named ? td_arena_strdup(arena, td_buffer_text(&n.name))
                        : first_line(arena, td_buffer_text(&n.stack));
    bool failed = n.stack.failed || n.name.failed;
    td_buffer_release(&n.name);
    td_buffer_release(&n.stack);
    return out->name && out->stack && !failed;
}
