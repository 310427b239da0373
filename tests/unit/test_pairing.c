/* test_pairing.c: what is said of how two tensors were paired, in JSON and in words. */
#include "match_support.h"

#include "report/diff_json.h"
#include "report/diff_words.h"

struct fixture {
    struct test_side a, b;
    const struct td_item *names[2];
    struct td_match match;
    struct td_pair pair;
};

static void begin(struct fixture *f)
{
    *f = (struct fixture){0};
    side_of_names(&f->a, NAMES("l.3.mlp", "l.3.mlp.down"));
    side_of_names(&f->b, NAMES("ffn-3"));
    f->names[0] = item_named(&f->a, "l.3.mlp.down");
    f->names[1] = item_named(&f->a, "l.3.mlp");
    f->match = (struct td_match){.a = f->names[0],
                                 .b = item_named(&f->b, "ffn-3"),
                                 .strategy = TD_MATCH_SHAPE,
                                 .sure = 0.729,
                                 .evidence = "correlation 0.9",
                                 .template_a = "l.{L}.mlp.down",
                                 .template_b = "ffn-{L}",
                                 .aliases_a = {f->names, 2}};
    f->pair =
        (struct td_pair){.a = f->match.a, .b = f->match.b, .match = &f->match, .strategy = f->match.strategy};
}

static void end(struct fixture *f)
{
    side_free(&f->a);
    side_free(&f->b);
}

static void assert_json(const struct td_pair *pair, const char *expected)
{
    struct td_buffer text;
    struct td_json j;
    td_buffer_init(&text, 1 << 16);
    td_json_to_buffer(&j, &text);
    td_json_begin_object(&j);
    td_pairing_json(&j, pair);
    td_json_end_object(&j);
    assert_true(td_json_finish(&j));
    assert_string_equal(td_buffer_text(&text), expected);
    td_buffer_release(&text);
}

static void as_json(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    assert_json(&f.pair,
                "{\"strategy\":\"shape\",\"sure\":0.729,\"aliases\":{\"a\":[\"l.3.mlp.down\",\"l.3.mlp\"],"
                "\"b\":[]},\"evidence\":\"correlation 0.9\",\"template\":{\"a\":\"l.{L}.mlp.down\","
                "\"b\":\"ffn-{L}\"}}");
    f.match.template_a = f.match.template_b = f.match.evidence = NULL;
    f.match.aliases_a.count = 1; /* its own name alone is no alias */
    f.pair.b = NULL;
    f.pair.strategy = TD_MATCH_NONE;
    assert_json(&f.pair,
                "{\"strategy\":\"none\",\"sure\":0.0,\"aliases\":{\"a\":[],\"b\":[]},\"evidence\":null,"
                "\"template\":null}");
    end(&f);
}

static void doubt(void **state)
{
    (void)state;
    struct fixture f;
    struct td_buffer text;
    begin(&f);
    td_buffer_init(&text, 1 << 10);
    assert_true(td_pair_doubt(&text, &f.match));
    assert_string_equal(td_buffer_text(&text), "paired by shape, 72 % sure");
    f.match.sure = 0.9;
    assert_false(td_pair_doubt(&text, &f.match));
    f.match.sure = 0;
    f.match.b = NULL;
    assert_false(td_pair_doubt(&text, &f.match));
    assert_false(td_pair_doubt(&text, NULL));
    td_buffer_release(&text);
    end(&f);
}

static void shares(void **state)
{
    (void)state;
    struct td_buffer text;
    td_buffer_init(&text, 1 << 10);
    td_diff_cover(&text, &(struct td_summary){.coverage_a = 0.999, .coverage_b = 0.001});
    assert_string_equal(td_buffer_text(&text), "99 % of A and less than 1 % of B have a partner");
    td_buffer_release(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_json),
        cmocka_unit_test(doubt),
        cmocka_unit_test(shares),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
