/* diff_words.c: see diff_words.h. */
#include "report/diff_words.h"

#include "base/number.h"
#include "compare/diagnose/retrained.h"
#include "compare/judge/between.h"
#include "compare/name/name.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* What to look at for each kind of mistake. */
static const char *const advice[TD_KINDS_OF_MISTAKE] = {
    [TD_IS_NAN] = "look for an overflow, a division by zero or a fully masked row just before it",
    [TD_IS_INF] = "look for a value beyond the type's range, or a log or division of zero",
    [TD_IS_SIGN] = "look for a swapped subtraction or a negated weight",
    [TD_IS_SCALE] = "look for a factor applied twice, left out, or folded into the weights",
    [TD_IS_STALE] = "look at how the buffer of this layer is filled and reused",
    [TD_IS_SWAP] = "look at the order in which the tensors are unpacked or passed",
    [TD_IS_SHIFT] = "look at position offsets, padding and the start of the sequence",
    [TD_IS_TRANSPOSE] =
        "look for a reshape where a transpose belongs, or a weight stored the other way round",
    [TD_IS_ROPE] = "look at the rotary embedding: pairing of channels, positions, base frequency",
    [TD_IS_PERMUTATION] = "look at the order of heads or channels when weights are split or merged",
    [TD_IS_MASK] = "look at the attention mask: its diagonal, window and broadcast",
    [TD_IS_ZEROED] = "look for positions that were never computed or were masked out",
    [TD_IS_CLAMP] = "look for a saturating type or a clip left in",
    [TD_IS_PRECISION] = "look for a step computed in a coarser type than it should be",
    [TD_IS_BIAS] = "look for a bias left out, added twice, or of another layer",
    [TD_IS_CHANNEL_SCALE] = "look at the norm's weight and at per-channel scales",
    [TD_IS_PARTIAL] = "look at what sets those positions apart: a shard, a tail block, padding",
};

static void place_of(char *out, size_t size, const struct td_pair *pair)
{
    if (pair->layer >= 0)
        snprintf(out, size, "layer %lld, %s", (long long)pair->layer, pair->stage);
    else
        snprintf(out, size, "%s", pair->name);
}

static void count(struct td_buffer *out, size_t n, const char *what, const char **separator)
{
    if (n == 0)
        return;
    td_buffer_printf(out, "%s%zu %s", *separator, n, what);
    *separator = ", ";
}

void td_diff_summarise(struct td_buffer *out, const struct td_diff *diff)
{
    const struct td_summary *s = &diff->result.summary;
    const char *separator = ": ";
    td_buffer_printf(out, "%zu %s", s->pairs, s->pairs == 1 ? "pair" : "pairs");
    count(out, s->identical, "identical", &separator);
    count(out, s->within, diff->policy.kind == TD_POLICY_NOISE ? "within the noise" : "within tolerance",
          &separator);
    count(out, s->diverged, "diverged", &separator);
    count(out, s->errors, s->errors == 1 ? "error" : "errors", &separator);
    count(out, s->only_a, "only in A", &separator);
    count(out, s->only_b, "only in B", &separator);
    if (diff->result.matches.layer_offset)
        td_buffer_printf(out, "; layer n of A is layer n%+lld of B",
                         (long long)diff->result.matches.layer_offset);
}

/* "[17,4,13]": one word, ready for `tdbg show`. */
static void say_index(struct td_buffer *out, const struct td_shape *shape, int64_t index)
{
    int64_t at[TD_MAX_DIMS];
    for (int i = shape->ndim - 1; i >= 0; i--) {
        at[i] = index % shape->size[i];
        index /= shape->size[i];
    }
    for (int i = 0; i < shape->ndim; i++)
        td_buffer_printf(out, "%c%lld", i ? ',' : '[', (long long)at[i]);
    td_buffer_puts(out, "]");
}

static bool is_complex(const struct td_item *item)
{
    return td_dtype_facts(item->parts[0]->dtype)->kind == TD_COMPLEX;
}

static void say_size(struct td_buffer *out, const struct td_pair *p)
{
    const struct td_metrics *m = &p->outcome.metrics;
    double relative = m->rel_l2, floor = p->outcome.ruling.floor;
    if (p->outcome.cut ==
        TD_CUT_MISSING) { /* what both have agrees: its figures would say that nothing is wrong */
        td_buffer_printf(out, "%s. ", p->outcome.ruling.reason);
        return;
    }
    if (m->paired == 0) {
        td_buffer_puts(out, "No element is finite on both sides. ");
        return;
    }
    if (m->count == 1) {
        td_buffer_printf(out, "A has %.9g, B has %.9g. ", m->argmax_a, m->argmax_b);
        return;
    }
    const struct td_worst *worst = p->outcome.worst_count ? &p->outcome.worst[0] : NULL;
    if (worst && !(isfinite(worst->a) && isfinite(worst->b))) {
        td_buffer_puts(out, "Element ");
        say_index(out, &p->layout->shape, worst->index);
        td_buffer_printf(out, " is %.6g in A and %.6g in B. ", worst->a, worst->b);
        if (relative == 0)
            return;
    }
    if (isfinite(relative))
        td_buffer_printf(out, "B is off by %.3g %% of A (relative L2)", 100 * relative);
    else
        td_buffer_puts(out, "A is zero throughout and B is not");
    char times[TD_NUMBER_SIZE];
    if (floor > 0 && isfinite(relative) && relative > floor)
        td_buffer_printf(out, ", %s times what rounding explains there",
                         td_number_factor(times, relative / floor));
    td_buffer_puts(out, "; the worst element, ");
    say_index(out, &p->layout->shape, m->argmax);
    if (is_complex(p->a) || is_complex(p->b)) /* the values are told by their moduli, which may be the same */
        td_buffer_printf(out, ", is off by %.6g (moduli %.6g and %.6g). ", m->max_abs, m->argmax_a,
                         m->argmax_b);
    else
        td_buffer_printf(out, ", is %.6g against %.6g. ", m->argmax_a, m->argmax_b);
}

static void say_diagnosis(struct td_buffer *out, const struct td_diagnosis *d)
{
    const struct td_finding *f = &d->list[0];
    if (f->kind == TD_IS_UNKNOWN) {
        td_buffer_puts(out, "No simple mistake explains it. ");
        return;
    }
    td_buffer_printf(out, "%s %s: %s. ", f->complete ? "It looks like" : "It may be",
                     td_mistake_name(f->kind), f->detail);
    if (advice[f->kind])
        td_buffer_printf(out, "%c%s. ", advice[f->kind][0] - 'a' + 'A', advice[f->kind] + 1);
}

/* Of what is told about the pair nothing holds if it is none. */
static void say_doubt(struct td_buffer *out, const struct td_pair *p)
{
    struct td_buffer doubt;
    td_buffer_init(&doubt, 1 << 12);
    if (td_pair_doubt(&doubt, p->match)) {
        td_buffer_printf(out, "The two may not belong together (%s", td_buffer_text(&doubt));
        if (p->match->evidence)
            td_buffer_printf(out, ": %s", p->match->evidence);
        td_buffer_puts(out, "). ");
    }
    td_buffer_release(&doubt);
}

/* Only where the order is known is one of them the first. */
static void say_place(struct td_buffer *out, const struct td_diff *diff)
{
    const struct td_pair *first = diff->result.first;
    bool ordered = diff->side_a.order != TD_ORDER_UNKNOWN, more = diff->result.summary.diverged > 1;
    char place[256];
    place_of(place, sizeof place, first);
    td_buffer_printf(out, "%s divergence: %s", ordered ? "First" : more ? "Largest" : "The only", place);
    if (td_pair_renamed(first))
        td_buffer_printf(out, " (in B: %s)", first->b->name);
    td_buffer_puts(out,
                   !ordered && more ? "; nothing tells in which order the tensors were computed. " : ". ");
    say_doubt(out, first);
}

/* A few names, A's first. */
static void say_names(struct td_buffer *out, const struct td_between *between)
{
    enum { NAMES = 3 };
    for (int side = 0; side < 2; side++) {
        size_t count = between->count[side], shown = count < NAMES ? count : NAMES;
        if (count == 0)
            continue;
        if (side && between->count[0])
            td_buffer_puts(out, "; ");
        for (size_t i = 0; i < shown; i++)
            td_buffer_printf(out, "%s%s", i ? ", " : "", between->names[side][i]);
        if (count > shown)
            td_buffer_printf(out, " and %zu more", count - shown);
        td_buffer_printf(out, " of %c", side ? 'B' : 'A');
    }
}

/* The mistake may be in what nobody compared. */
static void say_what_lies_between(struct td_buffer *out, const struct td_diff *diff)
{
    struct td_between between;
    td_between_find(&between, diff->result.pairs, diff->result.first, diff->side_a.order);
    size_t count = between.count[0] + between.count[1];
    if (count == 0)
        return;
    td_buffer_printf(out, "Before it, %zu %s no partner (", count,
                     count == 1 ? "tensor has" : "tensors have");
    say_names(out, &between);
    td_buffer_puts(out, "): the mistake may be in there. ");
}

/* What the order rests on, where the names do not show it. */
static void say_order(struct td_buffer *out, const struct td_diff *diff)
{
    static const char *const evidence[] = {
        [TD_ORDER_TIMES] = "The order is that in which the files were written, by their times. ",
        [TD_ORDER_SIDECAR] = "The order is that of the calls, as the dump lists them. ",
        [TD_ORDER_RECORDED] = NULL,
    };
    if (evidence[diff->side_a.order])
        td_buffer_puts(out, evidence[diff->side_a.order]);
}

static void say_what_follows(struct td_buffer *out, const struct td_diff *diff)
{
    size_t inherited = 0, born = 0, agree = 0, unknown = 0;
    for (const struct td_pair *p = diff->result.pairs; p < diff->result.pairs + diff->result.count; p++) {
        inherited += p->outcome.origin == TD_INHERITED;
        born += p->outcome.origin == TD_BORN && p != diff->result.first;
        unknown += p->outcome.ruling.verdict == TD_DIVERGED && p->outcome.origin == TD_ORIGIN_NONE &&
                   p != diff->result.first;
        agree += diff->side_a.order != TD_ORDER_UNKNOWN && p > diff->result.first &&
                 p->outcome.ruling.verdict <= TD_WITHIN;
    }
    if (inherited)
        td_buffer_printf(out, "%zu %s%s %s the error. ", inherited,
                         diff->side_a.order == TD_ORDER_UNKNOWN ? "" : "later ",
                         inherited == 1 ? "tensor" : "tensors", inherited == 1 ? "inherits" : "inherit");
    if (born)
        td_buffer_printf(out, "%zu more %s of %s own. ", born, born == 1 ? "adds an error" : "add errors",
                         born == 1 ? "its" : "their");
    if (unknown)
        td_buffer_printf(out, "%zu more %s, each for a reason of its own or because of another. ", unknown,
                         unknown == 1 ? "differs" : "differ");
    if (!inherited && !born && !unknown && agree)
        td_buffer_printf(out, "The %zu %s after it %s again. ", agree, agree == 1 ? "tensor" : "tensors",
                         agree == 1 ? "agrees" : "agree");
}

/* What no pair speaks for. */
static void say_what_is_missing(struct td_buffer *out, const struct td_diff *diff)
{
    size_t alone = diff->result.summary.only_a + diff->result.summary.only_b;
    size_t unread = td_input_skips(diff->a) + td_input_skips(diff->b);
    if (alone && diff->result.summary.pairs)
        td_buffer_printf(out, " %zu %s no partner.", alone, alone == 1 ? "tensor has" : "tensors have");
    if (unread)
        td_buffer_printf(out, " %zu could not be read and %s not compared.", unread,
                         unread == 1 ? "was" : "were");
}

static void say_share(struct td_buffer *out, double share)
{
    double percent = floor(100 * share);
    if (share > 0 && percent < 1)
        td_buffer_puts(out, "less than 1 %");
    else
        td_buffer_printf(out, "%.0f %%", percent);
}

void td_diff_cover(struct td_buffer *out, const struct td_summary *s)
{
    say_share(out, s->coverage_a);
    td_buffer_puts(out, " of A and ");
    say_share(out, s->coverage_b);
    td_buffer_puts(out, " of B have a partner");
}

static bool same_text(const char *a, size_t length_a, const char *b, size_t length_b)
{
    return length_a == length_b && memcmp(a, b, length_a) == 0;
}

bool td_pair_renamed(const struct td_pair *pair)
{
    if (!pair->a || !pair->b)
        return false;
    struct td_name a = td_name_split(pair->a->name), b = td_name_split(pair->b->name);
    if (!a.key != !b.key || (a.key && strcmp(a.key, b.key) != 0))
        return true;
    return !same_text(a.file, a.stem, b.file, b.stem);
}

bool td_pair_doubt(struct td_buffer *out, const struct td_match *match)
{
    static const double beyond_doubt = 0.9;
    if (!match || !match->a || !match->b || match->sure >= beyond_doubt)
        return false;
    td_buffer_printf(out, "paired by %s, %.0f %% sure", td_strategy_name(match->strategy),
                     floor(100 * match->sure + 1e-9)); /* 0.29 is a little less than 29 hundredths */
    return true;
}

/* Two dumps of which next to nothing is paired neither agree nor differ. */
static void say_not_enough(struct td_buffer *out, const struct td_diff *diff)
{
    td_buffer_puts(out, "not enough paired to say: ");
    if (diff->result.summary.pairs == 0)
        td_buffer_puts(out, "nothing in A has a partner in B");
    else
        td_diff_cover(out, &diff->result.summary);
    td_buffer_puts(out,
                   ". Try --pairs FILE or --names FILE to say which tensors belong together, --match S to "
                   "pair them in another way");
    td_buffer_puts(out, diff->result.summary.pairs ? ", or --coverage X to be content with a smaller share."
                                                   : ".");
}

static void say_agreement(struct td_buffer *out, const struct td_diff *diff)
{
    const struct td_summary *s = &diff->result.summary;
    bool all = s->only_a + s->only_b + td_input_skips(diff->a) + td_input_skips(diff->b) == 0;
    if (all)
        td_buffer_puts(out, "Every tensor has a partner. The two");
    else if (s->pairs == 1)
        td_buffer_puts(out, "The only pair");
    else
        td_buffer_printf(out, "The %zu pairs", s->pairs);
    const char *verb = !all && s->pairs == 1 ? s->within ? "agrees" : "is" : s->within ? "agree" : "are";
    td_buffer_printf(out, s->within ? " %s: what differs is within the tolerance" : " %s identical", verb);
    if (!all) {
        td_buffer_puts(out, "; ");
        td_diff_cover(out, s);
    }
    td_buffer_puts(out, ".");
}

static void say_first(struct td_buffer *out, const struct td_diff *diff)
{
    const struct td_outcome *first = &diff->result.first->outcome;
    say_place(out, diff);
    say_size(out, diff->result.first);
    if (first->diagnosis && first->cut != TD_CUT_MISSING)
        say_diagnosis(out, first->diagnosis);
    say_what_lies_between(out, diff);
    say_what_follows(out, diff);
    say_order(out, diff);
}

/* Two checkpoints have no first mistake; what stands out among their weights is one. */
static bool say_retrained(struct td_buffer *out, const struct td_diff *diff)
{
    struct td_retrained r;
    if (!td_retrained_find(&r, diff->result.pairs, diff->result.count))
        return false;
    td_buffer_printf(out, "The same architecture, other weights: %zu of %zu weights differ, %s. ", r.changed,
                     r.weights, r.further ? "as training changes them" : "and have nothing in common");
    if (r.odd_count == 0) {
        td_buffer_puts(out, "None stands out, so the first to differ is no mistake. ");
        return true;
    }
    td_buffer_puts(out, "Far less like its partner than the others: ");
    for (size_t i = 0; i < r.odd_count && i < TD_MOST_ODD; i++)
        td_buffer_printf(out, "%s%s", i ? ", " : "", r.odd[i]->name);
    if (r.odd_count > TD_MOST_ODD)
        td_buffer_printf(out, " and %zu more", r.odd_count - TD_MOST_ODD);
    td_buffer_puts(out, ". Look there first. ");
    return true;
}

void td_diff_conclude(struct td_buffer *out, const struct td_diff *diff)
{
    const struct td_summary *s = &diff->result.summary;
    if (!diff->result.first) {
        if (!s->enough)
            say_not_enough(out, diff);
        else if (s->errors)
            td_buffer_printf(out, "No divergence among the pairs that could be compared; %zu could not.",
                             s->errors);
        else
            say_agreement(out, diff);
        say_what_is_missing(out, diff);
        return;
    }
    if (!say_retrained(out, diff))
        say_first(out, diff);
    if (!s->enough) {
        td_buffer_puts(out, "Only ");
        td_diff_cover(out, s);
        td_buffer_puts(out, ": the first mistake may be in what has none. ");
    }
    while (out->size && out->data[out->size - 1] == ' ')
        out->data[--out->size] = 0;
}
