/* families.c: see families.h.
 *
 * One row of the table for each way to call a thing. A row fits a stage that ends in it, from a '.' (or '/')
 * on and without the kind: "q_proj" fits "self_attn.q_proj" and "attn.attention.q_proj". The longest fit
 * counts, so that "attention.output.dense" is not "output.dense". Rows of names outside the layers fit only
 * there: "output" is llama.cpp's head, and within a layer what the layer put out.
 */
#include "compare/name/families.h"

#include "compare/name/families_table.h"
#include "compare/name/name.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

int td_role_parts(enum td_role fused, enum td_role parts[3])
{
    if (fused == TD_ROLE_ATTN_QKV) {
        parts[0] = TD_ROLE_ATTN_Q, parts[1] = TD_ROLE_ATTN_K, parts[2] = TD_ROLE_ATTN_V;
        return 3;
    }
    if (fused == TD_ROLE_MLP_GATE_UP) {
        parts[0] = TD_ROLE_MLP_GATE, parts[1] = TD_ROLE_MLP_UP;
        return 2;
    }
    return 0;
}

/* text[0, *length) ends in `ending`, from one of `before` on; it is cut off then, with what is before it. Of
 * a hundred endings few have even the last letter in common with a name. */
static bool cut_ending(const char *text, size_t *length, const char *ending, const char *before)
{
    size_t n = strlen(ending);
    if (*length < n || tolower((unsigned char)text[*length - 1]) != ending[n - 1] ||
        strncasecmp(text + *length - n, ending, n) != 0)
        return false;
    if (*length == n) {
        *length = 0;
        return true;
    }
    if (!strchr(before, text[*length - n - 1]))
        return false;
    *length -= n + 1;
    return true;
}

static enum td_part_kind cut_kind(const char *stage, size_t *length)
{
    static const struct {
        const char *ending;
        enum td_part_kind kind;
    } kinds[] = {
        {"weight", TD_PART_WEIGHT}, {"kernel", TD_PART_WEIGHT}, {"gamma", TD_PART_WEIGHT},
        {"bias", TD_PART_BIAS},     {"beta", TD_PART_BIAS},     {"input", TD_PART_INPUT},
        {"output", TD_PART_OUTPUT},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        size_t cut = *length;
        if (!cut_ending(stage, &cut, kinds[i].ending, "./") || cut == 0)
            continue;
        *length = cut;
        return kinds[i].kind;
    }
    /* Megatron's norm lives in the module behind it, torch's q, k and v in that of attention, and stacked
     * experts in that of all of them. */
    static const struct {
        const char *ending, *module;
        enum td_part_kind kind;
    } inside[] = {
        {"layer_norm_weight", "layer_norm", TD_PART_WEIGHT},
        {"layer_norm_bias", "layer_norm", TD_PART_BIAS},
        {"in_proj_weight", "in_proj", TD_PART_WEIGHT},
        {"in_proj_bias", "in_proj", TD_PART_BIAS},
        {"gate_up_proj_bias", "gate_up_proj", TD_PART_BIAS},
        {"down_proj_bias", "down_proj", TD_PART_BIAS},
        {"w13_weight", "w13", TD_PART_WEIGHT},
        {"w13_bias", "w13", TD_PART_BIAS},
        {"w2_weight", "w2", TD_PART_WEIGHT},
        {"w2_bias", "w2", TD_PART_BIAS},
    };
    for (size_t i = 0; i < sizeof inside / sizeof *inside; i++) {
        size_t cut = *length;
        if (!cut_ending(stage, &cut, inside[i].ending, "./"))
            continue;
        *length -= strlen(inside[i].ending) - strlen(inside[i].module);
        return inside[i].kind;
    }
    return TD_PART_OUTPUT;
}

/* The longest row that fits, or NULL. */
static const struct td_family_row *find_row(const char *stage, size_t length, bool layered)
{
    const struct td_family_row *rows = layered ? td_rows_in_layer : td_rows_outside, *best = NULL;
    size_t count = layered ? td_rows_in_layer_count : td_rows_outside_count, longest = 0;
    for (size_t i = 0; i < count; i++) {
        size_t rest = length, n = strlen(rows[i].ending);
        if (n > longest && cut_ending(stage, &rest, rows[i].ending, "./")) {
            longest = n;
            best = &rows[i];
        }
    }
    return best;
}

static enum td_role find_role(const char *stage, size_t length, bool layered)
{
    const struct td_family_row *row = find_row(stage, length, layered);
    return row ? row->role : TD_ROLE_NONE;
}

static bool is_one_of(const struct td_word *word, const char *const *words)
{
    for (; *words; words++)
        if (td_word_is(word, *words))
            return true;
    return false;
}

static int64_t number_of(const struct td_word *word)
{
    int64_t number = 0;
    for (size_t i = 0; i < word->length; i++)
        number = number * 10 + (word->text[i] - '0');
    return number;
}

/* What the words of the stage add: attention to another stack, one expert of many. */
static void read_stage_words(const char *stage, size_t length, struct td_identity *out)
{
    static const char *const across[] = {"cross", "crossattention", "encoder", NULL};
    static const char *const experts[] = {"experts", "expert", "exps", NULL};
    struct td_word word, before = {0};
    for (size_t at = 0; td_word_next(stage, length, &at, false, &word); before = word) {
        if (is_one_of(&word, across) || td_word_is(&word, "EncDecAttention"))
            out->cross = true;
        bool names_experts = is_one_of(&word, experts);
        if (td_word_is(&word, "shexp") || (names_experts && before.length && td_word_is(&before, "shared")))
            out->expert = TD_SHARED_EXPERT;
        else if (names_experts && out->expert == TD_NO_EXPERT)
            out->expert = TD_ALL_EXPERTS;
        if (word.number && before.length && is_one_of(&before, experts) && word.length <= 9)
            out->expert = number_of(&word);
    }
}

static void read_stack(const char *name, size_t length, struct td_identity *out)
{
    static const char *const vision[] = {"vision", "visual", "vit", NULL};
    static const char *const audio[] = {"audio", NULL};
    static const char *const encoder[] = {"encoder", "enc", NULL};
    static const char *const decoder[] = {"decoder", "dec", NULL};
    struct td_word word;
    for (size_t at = 0; td_word_next(name, length, &at, false, &word);) {
        if (is_one_of(&word, vision))
            out->stack = TD_STACK_VISION;
        else if (is_one_of(&word, audio))
            out->stack = TD_STACK_AUDIO;
        else if (is_one_of(&word, encoder) && out->stack == TD_STACK_MAIN)
            out->stack = TD_STACK_ENCODER;
        else if (is_one_of(&word, decoder))
            out->decoder = true;
    }
}

enum td_stack td_stack_of(const char *name, size_t length)
{
    struct td_identity out = {0};
    read_stack(name, length, &out);
    return out.decoder ? TD_STACK_MAIN : out.stack;
}

enum td_role td_role_around(const char *stage)
{
    enum td_role role = TD_ROLE_NONE;
    for (size_t length = strlen(stage); length > 0 && role == TD_ROLE_NONE;) {
        while (length > 0 && !strchr("./", stage[length - 1]))
            length--;
        length -= length > 0;
        role = length ? find_role(stage, length, true) : TD_ROLE_NONE;
    }
    return role;
}

bool td_names_norm(const char *stage)
{
    static const char *const norms[] = {"norm", "layernorm", "rmsnorm", "ln", NULL};
    size_t length = strlen(stage);
    cut_kind(stage, &length);
    struct td_word word, last = {0};
    for (size_t at = 0; td_word_next(stage, length, &at, false, &word);)
        last = word;
    return last.length && is_one_of(&last, norms);
}

/* The number that text[0, length) ends in, behind `before`: its digits are cut off then; else -1. */
static int64_t cut_number(const char *text, size_t *length, const char *before)
{
    enum { MOST_DIGITS = 9 };
    size_t end = *length, at = end;
    while (at > 0 && text[at - 1] >= '0' && text[at - 1] <= '9')
        at--;
    size_t rest = at;
    if (at == end || end - at > MOST_DIGITS || !cut_ending(text, &rest, before, "./_"))
        return -1;
    *length = at;
    return number_of(&(struct td_word){.text = text + at, .length = end - at, .number = true});
}

/* Two families number their experts elsewhere: Transformer Engine the parameters of one module
 * (experts.linear_fc1.weight3), older files of llama.cpp the module itself (ffn_gate.3.weight). */
static void read_late_number(const char *stage, size_t *length, struct td_identity *out)
{
    static const struct {
        const char *before;
        enum td_part_kind kind;
    } parts[] = {{"weight", TD_PART_WEIGHT}, {"bias", TD_PART_BIAS}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts && out->expert == TD_ALL_EXPERTS; i++) {
        int64_t number = cut_number(stage, length, parts[i].before);
        if (number < 0 || !cut_ending(stage, length, parts[i].before, "."))
            continue;
        out->expert = number;
        out->kind = parts[i].kind;
        out->role = find_role(stage, *length, true);
    }
    static const char *const modules[] = {"ffn_gate.", "ffn_up.", "ffn_down."};
    for (size_t i = 0; i < sizeof modules / sizeof *modules && out->expert == TD_NO_EXPERT; i++) {
        int64_t number = cut_number(stage, length, modules[i]);
        if (number < 0)
            continue;
        out->expert = number;
        out->role = find_role(stage, *length - 1, true);
    }
}

/* Hugging Face keeps stacked experts as parameters of their module, without a word for what they are. */
static bool is_stacked_parameter(const struct td_identity *id, const char *stage, size_t length)
{
    return id->expert == TD_ALL_EXPERTS && id->kind == TD_PART_OUTPUT &&
           (cut_ending(stage, &length, "experts.gate_up_proj", ".") ||
            cut_ending(stage, &length, "experts.down_proj", "."));
}

/* "o_proj.0", "o_proj.output.0", "o_proj/__call__/0": the first of what a module puts out is what it is known
 * for. */
static bool cut_first_output(const char *stage, size_t *length)
{
    size_t rest = *length;
    if (!cut_ending(stage, &rest, "0", "./") || rest == 0)
        return false;
    cut_ending(stage, &rest, "output", "./");
    cut_ending(stage, &rest, "__call__", "./");
    *length = rest;
    return rest > 0;
}

struct td_identity td_role_of(const char *name, int64_t layer, const char *stage)
{
    struct td_identity out = {.expert = TD_NO_EXPERT};
    struct td_name parts = td_name_split(name);
    size_t length = strlen(stage);
    const char *own = parts.key ? parts.key : parts.file + parts.folder;
    size_t own_length = parts.key ? strlen(parts.key) : parts.stem - parts.folder;
    if (layer < 0) {
        stage = own;
        length = own_length;
        if (!parts.key && own_length == 1 && own[0] == '0') { /* a path of modules and not of folders */
            stage = name;
            length = parts.stem;
        }
    }
    out.gradient = cut_ending(stage, &length, "grad", "._/");
    out.kind = cut_kind(stage, &length);
    const struct td_family_row *row = find_row(stage, length, layer >= 0);
    if (!row && out.kind == TD_PART_OUTPUT && cut_first_output(stage, &length))
        row = find_row(stage, length, layer >= 0);
    out.role = row ? row->role : TD_ROLE_NONE;
    out.other = row ? row->other : TD_ROLE_NONE;
    if (layer >= 0) {
        read_stage_words(stage, length, &out);
        if (out.role == TD_ROLE_NONE)
            read_late_number(stage, &length, &out);
        if (is_stacked_parameter(&out, stage, length))
            out.kind = TD_PART_WEIGHT;
        own_length -= own_length < strlen(stage) ? own_length : strlen(stage);
    }
    read_stack(own, own_length, &out);
    return out;
}
