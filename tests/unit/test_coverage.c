/* test_coverage.c: what counts as paired, and when that is enough to say anything. */
#include "match_support.h"

#include "compare/judge/coverage.h"

struct fixture {
    struct test_side a, b;
    struct td_match matches[8];
    struct td_pair pairs[8];
    size_t count;
};

static void add(struct fixture *f, const char *a, const char *b)
{
    struct td_match *m = &f->matches[f->count];
    *m = (struct td_match){.a = a ? item_named(&f->a, a) : NULL, .b = b ? item_named(&f->b, b) : NULL};
    f->pairs[f->count++] = (struct td_pair){.a = m->a, .b = m->b, .match = m};
}

static struct td_coverage cover(const struct fixture *f, double needed)
{
    struct td_coverage c;
    assert_ok(td_coverage_find(&c, f->pairs, f->count, f->a.side.count, f->b.side.count, needed, NULL));
    return c;
}

static void end(struct fixture *f)
{
    side_free(&f->a);
    side_free(&f->b);
}

static void shares_of_each_side(void **state)
{
    (void)state;
    struct fixture f = {0};
    side_of_names(&f.a, NAMES("p", "q", "r", "s", "t"));
    side_of_names(&f.b, NAMES("p", "q"));
    add(&f, "p", "p");
    add(&f, "q", NULL);
    add(&f, "r", NULL);
    add(&f, "s", NULL);
    add(&f, "t", NULL);
    add(&f, NULL, "q");
    struct td_coverage c = cover(&f, 0.5);
    assert_true(c.a == 0.2 && c.b == 0.5 && c.enough); /* the shorter side decides */
    assert_false(cover(&f, 0.51).enough);
    assert_true(cover(&f, 0).enough);
    end(&f);
}

static void as_many_on_both_sides(void **state)
{
    (void)state;
    struct fixture f = {0};
    side_of_names(&f.a, NAMES("q", "k", "v"));
    side_of_names(&f.b, NAMES("qkv", "x", "y"));
    for (int part = 0; part < 3; part++)
        add(&f, ((const char *const[]){"q", "k", "v"})[part], "qkv");
    add(&f, NULL, "x");
    add(&f, NULL, "y");
    struct td_coverage c = cover(&f, 0.5);
    assert_true(c.a == 1 && c.b == 1.0 / 3);
    assert_false(c.enough); /* the smaller share */
    end(&f);
}

static void nothing_is_never_enough(void **state)
{
    (void)state;
    struct fixture f = {0};
    side_of_names(&f.a, NAMES("p"));
    side_of_names(&f.b, NAMES("q"));
    assert_false(cover(&f, 0).enough); /* no list at all */
    assert_true(cover(&f, 0).a == 0);
    add(&f, "p", NULL);
    add(&f, NULL, "q");
    assert_false(cover(&f, 0).enough);
    end(&f);
}

/* A tensor under several names is paired under all of them when it is under one, whether the others are
 * listed or not. */
static void aliases(void **state)
{
    (void)state;
    for (int listed = 0; listed < 2; listed++) {
        struct fixture f = {0};
        side_of_names(&f.a, NAMES("down", "mlp", "layer", "other", "same"));
        side_of_names(&f.b, NAMES("mlp"));
        const struct td_item *paired[] = {item_named(&f.a, "layer"), item_named(&f.a, "mlp"),
                                          item_named(&f.a, "down")};
        const struct td_item *alone[] = {item_named(&f.a, "other"), item_named(&f.a, "same")};
        add(&f, "mlp", "mlp");
        f.matches[0].aliases_a = (struct td_aliases){paired, 3};
        if (listed) {
            add(&f, "down", NULL);
            add(&f, "layer", NULL);
            f.matches[1].aliases_a = f.matches[2].aliases_a = f.matches[0].aliases_a;
        }
        add(&f, "other", NULL); /* which stands for "same", too */
        f.matches[f.count - 1].aliases_a = (struct td_aliases){alone, 2};
        struct td_coverage c = cover(&f, 0.5);
        assert_true(c.a == 0.6 && c.b == 1 && c.enough);
        end(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_of_each_side),
        cmocka_unit_test(as_many_on_both_sides),
        cmocka_unit_test(nothing_is_never_enough),
        cmocka_unit_test(aliases),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
