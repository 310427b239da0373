/* test_item.c: what names tell: ranks, layers, stages, the order of execution. */
#include "match_support.h"

static void assert_shard(const char *name, const char *bare, int64_t rank, int64_t of)
{
    char out[256];
    struct td_shard shard;
    assert_true(td_shard_name(name, out, &shard));
    assert_string_equal(out, bare);
    assert_int_equal(shard.rank, rank);
    assert_int_equal(shard.of, of);
}

static void marks_of_ranks(void **state)
{
    (void)state;
    assert_shard("rank3/0_query.pth", "0_query.pth", 3, 0);
    assert_shard("dumps/rank_3/0_query.pth", "dumps/0_query.pth", 3, 0);
    assert_shard("tp_rank_03/0_query.pth", "0_query.pth", 3, 0);
    assert_shard("mp_rank_03/model.pt:w", "model.pt:w", 3, 0);
    assert_shard("tp7/0_query.pth", "0_query.pth", 7, 0);
    assert_shard("mp_rank_00_model_states.pt:a.b", "model_states.pt:a.b", 0, 0);
    assert_shard("0_query_rank3.pth", "0_query.pth", 3, 0);
    assert_shard("0_query_tp_rank_12.pth", "0_query.pth", 12, 0);
    assert_shard("0_query.rank3.pth", "0_query.pth", 3, 0);
    assert_shard("rank3_0_query.pth", "0_query.pth", 3, 0);
    assert_shard("0_query/rank3.pth", "0_query.pth", 3, 0);
    assert_shard("Rank3.pth:w", "rank.pth:w", 3, 0);
    assert_shard("q.npz:rank3", "q.npz", 3, 0);
    assert_shard("rank3/mp_rank_03_model.pt:w", "model.pt:w", 3, 0);
    assert_shard("model-00003-of-00008.safetensors:w", "model.safetensors:w", 2, 8);
    assert_shard("zero_pp_rank_1_mp_rank_02_optim.pt", "zero_pp_rank_1_optim.pt", 2, 0);
}

static void names_without_marks(void **state)
{
    (void)state;
    static const char *const names[] = {
        "frank3/0_query.pth",
        "3_query.pth",
        "rank/0_query.pth",
        "rank3rd.pth",
        "tp3_query.pth",
        "tp/x",
        "dp_rank_3/x.pth",
        "00009-of-8.pt",
        "0-of-8.pt",
        "rank12345678901/x.pth",
        "",
        "ранк3/x",
    };
    char out[256];
    struct td_shard shard;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_false(td_shard_name(names[i], out, &shard));
}

static void whole_sets_are_joined(void **state)
{
    (void)state;
    struct test_side s;
    side_of_names(&s, NAMES("rank1/0_query.pth", "rank0/0_query.pth", "rank0/0_key.pth", "rank0/0_value.pth",
                            "rank2/0_value.pth", "0_scaling.pth"));
    assert_int_equal(s.side.count, 5);
    assert_int_equal(s.side.tensors, 6);
    const struct td_item *query = item_named(&s, "0_query.pth");
    assert_int_equal(query->part_count, 2);
    assert_string_equal(query->parts[0]->name, "rank0/0_query.pth");
    assert_string_equal(query->parts[1]->name, "rank1/0_query.pth");
    assert_int_equal(item_named(&s, "rank0/0_key.pth")->part_count, 1);   /* one rank only */
    assert_int_equal(item_named(&s, "rank2/0_value.pth")->part_count, 1); /* rank 1 is missing */
    side_free(&s);
}

static void what_cannot_be_parts_is_not_joined(void **state)
{
    (void)state;
    struct test_side s;
    struct td_tensor tensors[] = {
        float_tensor("rank0/a.pth", SHAPE(2, 2, 3), NULL), float_tensor("rank1/a.pth", SHAPE(1, 6), NULL),
        float_tensor("rank0/b.pth", SHAPE(1, 6), NULL),    float_tensor("rank1/b.pth", SHAPE(1, 6), NULL),
        float_tensor("b.pth", SHAPE(1, 6), NULL),
    };
    side_of_tensors(&s, tensors, 5);
    assert_int_equal(s.side.count, 5);
    item_named(&s, "rank1/a.pth");
    item_named(&s, "rank1/b.pth"); /* its bare name is somebody else's */
    side_free(&s);
}

static void files_may_share_out_a_model(void **state)
{
    (void)state;
    struct test_side s;
    side_of_names(&s, NAMES("m-00001-of-00002.bin:layers.0.w", "m-00001-of-00002.bin:norm",
                            "m-00002-of-00002.bin:layers.1.w", "m-00002-of-00002.bin:norm",
                            "x-00001-of-00003.bin:w", "x-00002-of-00003.bin:w"));
    assert_int_equal(s.side.count, 5);
    assert_int_equal(item_named(&s, "m.bin:layers.0.w")->part_count, 1);
    assert_int_equal(item_named(&s, "m.bin:layers.1.w")->part_count, 1);
    assert_int_equal(item_named(&s, "m.bin:norm")->part_count, 2);
    item_named(&s, "x-00001-of-00003.bin:w"); /* two of three are no set */
    side_free(&s);
}

static void assert_place(const char *name, int64_t layer, const char *stage)
{
    struct test_side s;
    side_of_names(&s, NAMES(name));
    assert_int_equal(s.side.items[0].layer, layer);
    assert_string_equal(s.side.items[0].stage, stage);
    side_free(&s);
}

static void layers_and_stages(void **state)
{
    (void)state;
    assert_place("dumps/3_query_final.pth", 3, "query_final");
    assert_place("model.layers.3.self_attn.q_proj.weight", 3, "self_attn.q_proj.weight");
    assert_place("blk.12.attn_q.weight", 12, "attn_q.weight");
    assert_place("transformer.h.3.attn.c_attn", 3, "attn.c_attn");
    assert_place("decoder.layers.3.mlp", 3, "mlp");
    assert_place("encoder.layer.3.output", 3, "output");
    assert_place("model.layers.3", 3, "output");
    assert_place("layer3/attn.npy", 3, "attn");
    assert_place("layer_3_attn.npy", 3, "attn");
    assert_place("model.safetensors:model.layers.3.mlp.experts.5.w1", 3, "mlp.experts.5.w1");
    assert_place("layer_03.pt:self_attn.q", 3, "self_attn.q");
    assert_place("blk.3.attn_q.safetensors:tensor", 3, "attn_q");
    assert_place("blk.3.attn_q.safetensors:weight", 3, "attn_q.weight");
    assert_place("encoder.block.2.layer.1.DenseReluDense.wi", 2, "layer.1.DenseReluDense.wi");
    assert_place("features.0.weight", -1, "features.0.weight");
    assert_place("layer_norm.weight", -1, "layer_norm.weight");
    assert_place("depth.3.w", -1, "depth.3.w");
    assert_place("layers.99999999999.w", -1, "layers.99999999999.w");
    assert_place("слой.layers.3.вес", 3, "вес");
}

static void assert_order(const char *const *names, const char *const *expected)
{
    struct test_side s;
    side_of_names(&s, names);
    for (size_t i = 0; i < s.side.count; i++)
        assert_int_equal(item_named(&s, expected[i])->order, i);
    side_free(&s);
}

static void order_of_execution(void **state)
{
    (void)state;
    assert_order(NAMES("10_query.pth", "2_zebra.pth", "2_key.pth", "ids.pth", "2_query.pth"),
                 NAMES("2_query.pth", "2_key.pth", "2_zebra.pth", "10_query.pth", "ids.pth"));
    assert_order(NAMES("rope.freqs", "model.layers.10.b", "model.layers.2.b", "model.layers.2.a", "last"),
                 NAMES("rope.freqs", "model.layers.2.b", "model.layers.2.a", "model.layers.10.b", "last"));
    /* In a file sorted by name the head comes first, and before the norm it reads. */
    assert_order(
        NAMES("lm_head.weight", "model.layers.0.a", "model.norm.weight", "model.embed_tokens.weight"),
        NAMES("model.embed_tokens.weight", "model.layers.0.a", "model.norm.weight", "lm_head.weight"));
    /* Two stacks run one after the other, two folders of one stack do not. */
    assert_order(NAMES("encoder.layers.0.w", "encoder.layers.1.w", "encoder.end", "decoder.layers.0.w"),
                 NAMES("encoder.layers.0.w", "encoder.layers.1.w", "encoder.end", "decoder.layers.0.w"));
    assert_order(NAMES("attn/0_query.pth", "attn/1_query.pth", "mlp/0_post_mlp.pth", "mlp/1_post_mlp.pth"),
                 NAMES("attn/0_query.pth", "mlp/0_post_mlp.pth", "attn/1_query.pth", "mlp/1_post_mlp.pth"));
    assert_order(NAMES("b", "a", "c"), NAMES("b", "a", "c"));
    /* The alphabet is no order of execution; an encoder runs first wherever it is listed. */
    assert_order(NAMES("layers.0.down_proj", "layers.0.k_proj", "layers.0.q_proj"),
                 NAMES("layers.0.q_proj", "layers.0.k_proj", "layers.0.down_proj"));
    assert_order(NAMES("decoder.layers.0.w", "encoder.layers.0.w"),
                 NAMES("encoder.layers.0.w", "decoder.layers.0.w"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(marks_of_ranks),
        cmocka_unit_test(names_without_marks),
        cmocka_unit_test(whole_sets_are_joined),
        cmocka_unit_test(what_cannot_be_parts_is_not_joined),
        cmocka_unit_test(files_may_share_out_a_model),
        cmocka_unit_test(layers_and_stages),
        cmocka_unit_test(order_of_execution),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
