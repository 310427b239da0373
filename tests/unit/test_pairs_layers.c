/* test_pairs_layers.c: pairs told once for all layers: read, and written where all layers agree. */
#include "match_support.h"

#include "session/pairs_file.h"

#include <unistd.h>

struct fixture {
    struct test_side a, b;
    struct td_matches matches;
};

static void begin(struct fixture *f, const char *const *a, const char *const *b,
                  const struct td_name_pair *pairs, size_t count)
{
    struct tdbg_error error;
    side_of_names(&f->a, a);
    side_of_names(&f->b, b);
    struct td_match_options options = {.strategy = "manual", .manual = pairs, .manual_count = count};
    assert_ok(td_match_sides(&f->matches, &f->a.side, &f->b.side, &options, NULL, &error));
}

static void end(struct fixture *f)
{
    td_matches_release(&f->matches);
    side_free(&f->a);
    side_free(&f->b);
}

static const char *partner(const struct fixture *f, const char *a)
{
    for (size_t i = 0; i < f->matches.count; i++)
        if (f->matches.pairs[i].a && strcmp(f->matches.pairs[i].a->name, a) == 0)
            return f->matches.pairs[i].b ? f->matches.pairs[i].b->name : "";
    fail_msg("'%s' is in no pair", a);
    return NULL;
}

static void every_layer_of_both(void **state)
{
    (void)state;
    struct fixture f;
    const struct td_name_pair pairs[] = {{.a = "layers.{L}.q", .b = "Qcur-{L}"}};
    begin(&f, NAMES("layers.0.q", "layers.1.q", "layers.10.q", "layers.2.k"),
          NAMES("Qcur-0", "Qcur-01", "Qcur-10", "Qcur-7", "Kcur-2"), pairs, 1);
    assert_string_equal(partner(&f, "layers.0.q"), "Qcur-0");
    assert_string_equal(partner(&f, "layers.1.q"), "Qcur-01");
    assert_string_equal(partner(&f, "layers.10.q"), "Qcur-10");
    assert_string_equal(partner(&f, "layers.2.k"), "");
    end(&f);
}

static void counted_from_elsewhere(void **state)
{
    (void)state;
    struct fixture f;
    const struct td_name_pair pairs[] = {{.a = "layers.{L}.q", .b = "b{L+1}_q"},
                                         {.a = "x{L-2}", .b = "y{L}"}};
    begin(&f, NAMES("layers.0.q", "layers.1.q", "x1"), NAMES("b0_q", "b1_q", "b2_q", "y3"), pairs, 2);
    assert_string_equal(partner(&f, "layers.0.q"), "b1_q");
    assert_string_equal(partner(&f, "layers.1.q"), "b2_q");
    assert_string_equal(partner(&f, "x1"), "y3");
    end(&f);
}

/* What is said of one tensor is an exception of what is said of all. */
static void exceptions(void **state)
{
    (void)state;
    struct fixture f;
    const struct td_name_pair pairs[] = {{.a = "l{L}", .b = "m{L}"}, {.a = "l1", .b = "m2"}};
    begin(&f, NAMES("l0", "l1", "l2"), NAMES("m0", "m1", "m2"), pairs, 2);
    assert_string_equal(partner(&f, "l0"), "m0");
    assert_string_equal(partner(&f, "l1"), "m2");
    assert_string_equal(partner(&f, "l2"), ""); /* m2 is taken */
    end(&f);
}

static void a_name_that_looks_like_one(void **state)
{
    (void)state;
    struct fixture f;
    const struct td_name_pair pairs[] = {{.a = "l{L}", .b = "m0"}};
    begin(&f, NAMES("l{L}", "l0"), NAMES("m0"), pairs, 1);
    assert_string_equal(partner(&f, "l{L}"), "m0");
    end(&f);
}

/* Three parts of a fused tensor in each of four layers are more pairs than there are tensors. */
static void parts_in_every_layer(void **state)
{
    (void)state;
    struct fixture f;
    const struct td_name_pair pairs[] = {
        {.a = "q{L}", .b = "qkv{L}", .fused_b = {0, 3}},
        {.a = "k{L}", .b = "qkv{L}", .fused_b = {1, 3}},
        {.a = "v{L}", .b = "qkv{L}", .fused_b = {2, 3}},
    };
    begin(&f, NAMES("q0", "k0", "v0", "q1", "k1", "v1"), NAMES("qkv0", "qkv1"), pairs, 3);
    assert_int_equal(f.matches.count, 6);
    assert_string_equal(partner(&f, "v1"), "qkv1");
    end(&f);
}

static void what_fits_nothing(void **state)
{
    (void)state;
    static const struct {
        struct td_name_pair pair;
        tdbg_status status;
        const char *message;
    } table[] = {
        {{.a = "x{L}", .b = "m{L}"},
         TDBG_NOTFOUND,
         "the list of pairs has 'x{L}', which fits no tensor of A"},
        {{.a = "l{L}", .b = "m.{L}"},
         TDBG_NOTFOUND,
         "the list of pairs has 'm.{L}', which fits no tensor of B"},
        {{.a = "l{L}", .b = "m{L+5}", .by_program = true},
         TDBG_NOTFOUND,
         "the matching program has 'l{L}' and 'm{L+5}', which have no layer in common"},
        {{.a = "l{L}", .b = "m0"}, TDBG_MISUSE, "the list of pairs has {L} in 'l{L}' and none in 'm0'"},
        {{.a = "{L}{L}", .b = "m0"}, TDBG_NOTFOUND, "the list of pairs names '{L}{L}', which is not in A"},
        {{.a = "l{L+}", .b = "m{L}"}, TDBG_MISUSE, "the list of pairs has {L} in 'm{L}' and none in 'l{L+}'"},
        {{.a = "l{L+99999999999999999999}", .b = "m0"},
         TDBG_NOTFOUND,
         "the list of pairs names 'l{L+99999999999999999999}', which is not in A"},
    };
    struct test_side a, b;
    struct tdbg_error error;
    struct td_matches matches;
    side_of_names(&a, NAMES("l0", "l1", "l99999999999999999999"));
    side_of_names(&b, NAMES("m0", "m1"));
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct td_match_options options = {.manual = &table[i].pair, .manual_count = 1};
        assert_fails(td_match_sides(&matches, &a.side, &b.side, &options, NULL, &error), table[i].status,
                     table[i].message);
    }
    side_free(&a);
    side_free(&b);
}

/* --- writing -------------------------------------------------------------------------------------------- */

static void template_of(struct fixture *f, const char *a, const char *ta, const char *tb)
{
    for (size_t i = 0; i < f->matches.count; i++) {
        struct td_match *m = &f->matches.pairs[i];
        if (m->a && strcmp(m->a->name, a) == 0) {
            m->template_a = ta;
            m->template_b = tb;
        }
    }
}

/* Writes and reads again: as many lines as expected, and the same pairs. */
static void round_trip(const struct fixture *f, size_t lines, const char *first_a, const char *first_b)
{
    struct tdbg_error error;
    struct td_pairs pairs;
    struct td_matches again;
    char path[] = "/tmp/tdbg-layers-XXXXXX";
    assert_true(close(mkstemp(path)) == 0);
    assert_ok(td_pairs_write(&f->matches, path, &error));
    assert_ok(td_pairs_read(&pairs, path, &error));
    assert_int_equal(pairs.count, lines);
    assert_string_equal(pairs.list[0].a, first_a);
    assert_string_equal(pairs.list[0].b, first_b);
    struct td_match_options options = {
        .strategy = "manual", .manual = pairs.list, .manual_count = pairs.count};
    assert_ok(td_match_sides(&again, &f->a.side, &f->b.side, &options, NULL, &error));
    assert_int_equal(again.count, f->matches.count);
    for (size_t i = 0; i < again.count; i++) {
        assert_ptr_equal(again.pairs[i].a, f->matches.pairs[i].a);
        assert_ptr_equal(again.pairs[i].b, f->matches.pairs[i].b);
    }
    td_matches_release(&again);
    td_pairs_release(&pairs);
    unlink(path);
}

static void written_once_for_all(void **state)
{
    (void)state;
    struct fixture f;
    const struct td_name_pair pairs[] = {{.a = "q.0", .b = "Q-1"},
                                         {.a = "q.1", .b = "Q-2"},
                                         {.a = "k.0", .b = "K-0"},
                                         {.a = "k.1", .b = "K-1"}};
    begin(&f, NAMES("q.0", "q.1", "q.2", "k.0", "k.1"), NAMES("Q-1", "Q-2", "K-0", "K-1"), pairs, 4);
    template_of(&f, "q.0", "q.{L}", "Q-{L}");
    template_of(&f, "q.1", "q.{L}", "Q-{L}");
    round_trip(&f, 3, "q.{L}", "Q-{L+1}"); /* q.2 has nobody, and none that it could be read with */
    end(&f);
}

/* Where a template would say more than is so, pairs are written one by one. */
static void not_where_layers_disagree(void **state)
{
    (void)state;
    struct fixture f;
    const struct td_name_pair crossed[] = {{.a = "q.0", .b = "Q-1"}, {.a = "q.1", .b = "Q-0"}};
    begin(&f, NAMES("q.0", "q.1"), NAMES("Q-0", "Q-1"), crossed, 2);
    template_of(&f, "q.0", "q.{L}", "Q-{L}");
    template_of(&f, "q.1", "q.{L}", "Q-{L}");
    round_trip(&f, 2, "q.0", "Q-1");
    end(&f);

    const struct td_name_pair other[] = {
        {.a = "q.0", .b = "Q-0"}, {.a = "q.1", .b = "Q-1"}, {.a = "q.2", .b = "x"}, {.a = "y", .b = "Q-2"}};
    begin(&f, NAMES("q.0", "q.1", "q.2", "y"), NAMES("Q-0", "Q-1", "Q-2", "x"), other, 4);
    template_of(&f, "q.0", "q.{L}", "Q-{L}");
    template_of(&f, "q.1", "q.{L}", "Q-{L}");
    round_trip(&f, 4, "q.0", "Q-0");
    end(&f);

    const struct td_name_pair some[] = {{.a = "q.0", .b = "Q-0"}, {.a = "q.1", .b = "Q-1"}};
    begin(&f, NAMES("q.0", "q.1", "q.2"), NAMES("Q-0", "Q-1", "Q-2"), some, 2);
    template_of(&f, "q.0", "q.{L}", "Q-{L}");
    template_of(&f, "q.1", "q.{L}", "Q-{L}");
    round_trip(&f, 2, "q.0", "Q-0"); /* layer 2 was left alone on purpose */
    end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_layer_of_both),  cmocka_unit_test(counted_from_elsewhere),
        cmocka_unit_test(exceptions),           cmocka_unit_test(a_name_that_looks_like_one),
        cmocka_unit_test(parts_in_every_layer), cmocka_unit_test(what_fits_nothing),
        cmocka_unit_test(written_once_for_all), cmocka_unit_test(not_where_layers_disagree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
