/* test_match.c: which tensors each strategy pairs, and which it leaves alone. */
#include "match_support.h"

#include <stdio.h>
#include <time.h>

struct fixture {
    struct test_side a, b;
    struct td_matches matches;
};

static void match_with(struct fixture *f, const char *const *a, const char *const *b, const char *strategy)
{
    side_of_names(&f->a, a);
    side_of_names(&f->b, b);
    assert_ok(td_match_sides(&f->matches, &f->a.side, &f->b.side,
                             &(struct td_match_options){.strategy = strategy}, NULL, NULL));
}

static void release(struct fixture *f)
{
    td_matches_release(&f->matches);
    side_free(&f->a);
    side_free(&f->b);
}

/* The pairs as text: "a=b strategy", one-sided "a=" and "=b", in order, "; " between them. */
static const char *text_of(const struct td_matches *m)
{
    static char text[8192];
    size_t at = 0;
    text[0] = '\0';
    for (size_t i = 0; i < m->count; i++) {
        const struct td_match *p = &m->pairs[i];
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%s", i ? "; " : "", p->a ? p->a->name : "");
        if (p->fused_a.of)
            at += (size_t)snprintf(text + at, sizeof text - at, "[%d/%d]", p->fused_a.index, p->fused_a.of);
        at += (size_t)snprintf(text + at, sizeof text - at, "=%s", p->b ? p->b->name : "");
        if (p->fused_b.of)
            at += (size_t)snprintf(text + at, sizeof text - at, "[%d/%d]", p->fused_b.index, p->fused_b.of);
        if (p->strategy)
            at += (size_t)snprintf(text + at, sizeof text - at, " %s", td_strategy_name(p->strategy));
    }
    return text;
}

static void assert_matches(const char *const *a, const char *const *b, const char *strategy,
                           const char *expected)
{
    struct fixture f;
    match_with(&f, a, b, strategy);
    assert_string_equal(text_of(&f.matches), expected);
    release(&f);
}

static void by_stage(void **state)
{
    (void)state;
    assert_matches(NAMES("0_query.pth", "0_key.pth", "1_query.pth"),
                   NAMES("0_key.npy", "0_query.npy", "0_extra.npy"), NULL,
                   "0_query.pth=0_query.npy stage; 0_key.pth=0_key.npy stage; =0_extra.npy; 1_query.pth=");
    /* The same stage in several folders: the folder decides, then the order. */
    assert_matches(
        NAMES("s1/0_query.pth", "s2/0_query.pth", "s3/0_query.pth"), NAMES("s2/0_query.pth", "x/0_query.pth"),
        "stage", "s1/0_query.pth=x/0_query.pth stage; s2/0_query.pth=s2/0_query.pth stage; s3/0_query.pth=");
}

static int64_t offset_of(int a_first, int a_last, int b_first, int b_last)
{
    char names[2][32][16];
    const char *lists[2][33] = {{NULL}, {NULL}};
    int range[2][2] = {{a_first, a_last}, {b_first, b_last}};
    for (int s = 0; s < 2; s++)
        for (int i = range[s][0], n = 0; i <= range[s][1]; i++, n++) {
            snprintf(names[s][n], sizeof names[s][n], "%d_query", i);
            lists[s][n] = names[s][n];
        }
    struct fixture f;
    match_with(&f, lists[0], lists[1], NULL);
    int64_t offset = f.matches.layer_offset;
    for (size_t i = 0; i < f.matches.count; i++)
        if (f.matches.pairs[i].a && f.matches.pairs[i].b)
            assert_int_equal(f.matches.pairs[i].b->layer, f.matches.pairs[i].a->layer + offset);
    release(&f);
    return offset;
}

static void layers_may_be_offset(void **state)
{
    (void)state;
    assert_int_equal(offset_of(3, 10, 0, 7), -3);
    assert_int_equal(offset_of(0, 7, 3, 10), 3);
    assert_int_equal(offset_of(1, 24, 0, 23), -1);
    assert_int_equal(offset_of(5, 5, 0, 0), -5);
    assert_int_equal(offset_of(0, 9, 0, 9), 0);
    assert_int_equal(offset_of(0, 9, 1, 9), 0); /* the first layer was not dumped */
    assert_int_equal(offset_of(0, 9, 2, 5), 0);
    assert_int_equal(offset_of(0, 5, 10, 12), 10);
}

static void by_exact_name(void **state)
{
    (void)state;
    assert_matches(NAMES("norm.weight", "x", "x", "ünïcode.вес"), NAMES("x", "ünïcode.вес", "norm.bias"),
                   "exact", "norm.weight=; x=x exact; x=; ünïcode.вес=ünïcode.вес exact; =norm.bias");
    assert_matches(
        NAMES("run/a/model.pth:layers.0.w", "run/a/model.pth:layers.1.w"), NAMES("layers.0.w", "layers.1.w"),
        "exact", "run/a/model.pth:layers.0.w=layers.0.w exact; run/a/model.pth:layers.1.w=layers.1.w exact");
    assert_matches(NAMES("a/x/out.npy", "a/y/out.npy"), NAMES("b/c/y/out.pt", "b/c/x/out.pt"), "exact",
                   "a/x/out.npy=b/c/x/out.pt exact; a/y/out.npy=b/c/y/out.pt exact");
    /* A key in two files says nothing about which. */
    assert_matches(NAMES("p.pth:w", "q.pth:w"), NAMES("w"), "exact", "p.pth:w=; q.pth:w=; =w");
}

static void by_family(void **state)
{
    (void)state;
    assert_matches(
        NAMES("model.embed_tokens.weight", "model.layers.0.input_layernorm.weight",
              "model.layers.0.self_attn.q_proj.weight", "model.layers.0.self_attn.q_proj.bias",
              "model.layers.0.self_attn.o_proj.weight", "model.layers.0.post_attention_layernorm.weight",
              "model.layers.0.mlp.gate_proj.weight", "model.layers.0.mlp.up_proj.weight",
              "model.layers.0.mlp.down_proj.weight", "model.norm.weight", "lm_head.weight"),
        NAMES("output.weight", "token_embd.weight", "output_norm.weight", "blk.0.attn_norm.weight",
              "blk.0.attn_q.bias", "blk.0.attn_q.weight", "blk.0.attn_output.weight", "blk.0.ffn_norm.weight",
              "blk.0.ffn_gate.weight", "blk.0.ffn_up.weight", "blk.0.ffn_down.weight"),
        NULL,
        "model.embed_tokens.weight=token_embd.weight fuzzy; "
        "model.layers.0.input_layernorm.weight=blk.0.attn_norm.weight fuzzy; "
        "model.layers.0.self_attn.q_proj.weight=blk.0.attn_q.weight fuzzy; "
        "model.layers.0.self_attn.q_proj.bias=blk.0.attn_q.bias fuzzy; "
        "model.layers.0.self_attn.o_proj.weight=blk.0.attn_output.weight fuzzy; "
        "model.layers.0.post_attention_layernorm.weight=blk.0.ffn_norm.weight fuzzy; "
        "model.layers.0.mlp.gate_proj.weight=blk.0.ffn_gate.weight fuzzy; "
        "model.layers.0.mlp.up_proj.weight=blk.0.ffn_up.weight fuzzy; "
        "model.layers.0.mlp.down_proj.weight=blk.0.ffn_down.weight fuzzy; "
        "model.norm.weight=output_norm.weight fuzzy; lm_head.weight=output.weight fuzzy");
    assert_matches(
        NAMES("transformer.wte.weight", "transformer.h.1.attn.c_attn.weight",
              "transformer.h.1.mlp.c_fc.weight", "transformer.h.1.mlp.c_proj.weight",
              "transformer.ln_f.weight"),
        NAMES("embedding.word_embeddings.weight", "decoder.layers.1.self_attention.linear_qkv.weight",
              "decoder.layers.1.mlp.linear_fc1.weight", "decoder.layers.1.mlp.linear_fc2.weight",
              "decoder.final_layernorm.weight"),
        NULL,
        "transformer.wte.weight=embedding.word_embeddings.weight fuzzy; "
        "transformer.h.1.attn.c_attn.weight=decoder.layers.1.self_attention.linear_qkv.weight fuzzy; "
        "transformer.h.1.mlp.c_fc.weight=decoder.layers.1.mlp.linear_fc1.weight fuzzy; "
        "transformer.h.1.mlp.c_proj.weight=decoder.layers.1.mlp.linear_fc2.weight fuzzy; "
        "transformer.ln_f.weight=decoder.final_layernorm.weight fuzzy");
    assert_matches(NAMES("layers.2.attention.wq.weight", "layers.2.feed_forward.w2.weight"),
                   NAMES("gpt.layers.2.mlp.dense_4h_to_h.weight", "model.layers.2.self_attn.q_proj.weight"),
                   "fuzzy",
                   "layers.2.attention.wq.weight=model.layers.2.self_attn.q_proj.weight fuzzy; "
                   "layers.2.feed_forward.w2.weight=gpt.layers.2.mlp.dense_4h_to_h.weight fuzzy");
    assert_matches(NAMES("model.layers.0.mlp.experts.1.gate_proj.weight",
                         "model.layers.0.mlp.experts.2.gate_proj.weight"),
                   NAMES("layers.0.experts.2.w1.weight", "layers.0.experts.3.w1.weight"), "fuzzy",
                   "model.layers.0.mlp.experts.1.gate_proj.weight=; "
                   "model.layers.0.mlp.experts.2.gate_proj.weight=layers.0.experts.2.w1.weight fuzzy; "
                   "=layers.0.experts.3.w1.weight");
    /* Gemma's norm of that name is not the one before the MLP. */
    assert_matches(NAMES("model.layers.0.post_attention_layernorm.weight",
                         "model.layers.0.pre_feedforward_layernorm.weight"),
                   NAMES("blk.0.ffn_norm.weight", "blk.0.post_attention_norm.weight"), "fuzzy",
                   "model.layers.0.post_attention_layernorm.weight=blk.0.post_attention_norm.weight fuzzy; "
                   "model.layers.0.pre_feedforward_layernorm.weight=blk.0.ffn_norm.weight fuzzy");
    /* Experts that are shared, or all in one tensor. */
    assert_matches(NAMES("model.layers.0.mlp.shared_experts.up_proj.weight",
                         "model.layers.0.mlp.experts.down_proj",
                         "model.layers.0.mlp.experts.0.up_proj.weight"),
                   NAMES("blk.0.ffn_up_shexp.weight", "blk.0.ffn_up_exps.weight"), "fuzzy",
                   "model.layers.0.mlp.shared_experts.up_proj.weight=blk.0.ffn_up_shexp.weight fuzzy; "
                   "=blk.0.ffn_up_exps.weight; model.layers.0.mlp.experts.down_proj=; "
                   "model.layers.0.mlp.experts.0.up_proj.weight=");
    assert_matches(
        NAMES("decoder.block.0.layer.1.EncDecAttention.q.weight",
              "decoder.block.0.layer.0.SelfAttention.q.weight",
              "decoder.block.0.layer.0.SelfAttention.o.weight"),
        NAMES("dec.blk.0.cross_attn_q.weight", "dec.blk.0.attn_q.weight", "dec.blk.0.attn_o.weight"), "fuzzy",
        "decoder.block.0.layer.1.EncDecAttention.q.weight=dec.blk.0.cross_attn_q.weight fuzzy; "
        "decoder.block.0.layer.0.SelfAttention.q.weight=dec.blk.0.attn_q.weight fuzzy; "
        "decoder.block.0.layer.0.SelfAttention.o.weight=dec.blk.0.attn_o.weight fuzzy");
    assert_matches(
        NAMES("model.decoder.layers.0.encoder_attn.out_proj.weight", "model.decoder.layers.0.fc1.weight",
              "model.decoder.layers.0.final_layer_norm.weight"),
        NAMES("decoder.blocks.0.mlp_ln.weight", "decoder.blocks.0.mlp.0.weight",
              "decoder.blocks.0.cross_attn.out.weight", "decoder.blocks.0.attn.out.weight"),
        "fuzzy",
        "model.decoder.layers.0.encoder_attn.out_proj.weight=decoder.blocks.0.cross_attn.out.weight "
        "fuzzy; =decoder.blocks.0.attn.out.weight; "
        "model.decoder.layers.0.final_layer_norm.weight=decoder.blocks.0.mlp_ln.weight fuzzy; "
        "model.decoder.layers.0.fc1.weight=decoder.blocks.0.mlp.0.weight fuzzy");
    /* Stages of a dump against the outputs of modules. */
    assert_matches(NAMES("3_query.pth", "3_post_attn_pre_resid.pth"),
                   NAMES("model.layers.3.self_attn.q_proj", "model.layers.3.self_attn.o_proj.output"), NULL,
                   "3_query.pth=model.layers.3.self_attn.q_proj fuzzy; "
                   "3_post_attn_pre_resid.pth=model.layers.3.self_attn.o_proj.output fuzzy");
}

static void one_stack_each(void **state)
{
    (void)state;
    assert_matches(NAMES("vit.encoder.layer.0.intermediate.dense.weight", "classifier.weight"),
                   NAMES("blocks.0.mlp.fc1.weight", "blocks.0.mlp.fc2.weight"), "fuzzy",
                   "vit.encoder.layer.0.intermediate.dense.weight=blocks.0.mlp.fc1.weight fuzzy; "
                   "=blocks.0.mlp.fc2.weight; classifier.weight=");
    assert_matches(NAMES("vision.layers.0.fc1.weight", "text.layers.0.fc1.weight"),
                   NAMES("layers.0.mlp.fc1.weight"), "fuzzy",
                   "vision.layers.0.fc1.weight=; text.layers.0.fc1.weight=layers.0.mlp.fc1.weight fuzzy");
}

static void by_similar_words(void **state)
{
    (void)state;
    assert_matches(
        NAMES("layers.0.attention_scores.raw", "layers.0.rotary_cos"),
        NAMES("h.0.rotary.cos", "h.0.raw.attn.scores"), "fuzzy",
        "layers.0.attention_scores.raw=h.0.raw.attn.scores fuzzy; layers.0.rotary_cos=h.0.rotary.cos fuzzy");
    /* Another number, another kind, q and k: never. */
    assert_matches(NAMES("x.part.1.out", "side.adapter.weight", "a.b.c.d.q"),
                   NAMES("x.part.2.out", "side.adapter.bias", "a.b.c.d.k"), "fuzzy",
                   "x.part.1.out=; side.adapter.weight=; a.b.c.d.q=; "
                   "=x.part.2.out; =side.adapter.bias; =a.b.c.d.k");
    /* Nor another layer, unless all layers are another. */
    assert_matches(NAMES("layers.0.rotary_cos", "layers.1.gamma_x"),
                   NAMES("layers.0.gamma_x", "layers.1.rotary_cos"), "fuzzy",
                   "layers.0.rotary_cos=; layers.1.gamma_x=; =layers.0.gamma_x; =layers.1.rotary_cos");
    assert_matches(NAMES("layers.0.rotary_cos"), NAMES("layers.1.rotary_cos"), "fuzzy",
                   "layers.0.rotary_cos=layers.1.rotary_cos fuzzy");
}

static void threshold_is_adjustable(void **state)
{
    (void)state;
    struct fixture f;
    struct tdbg_error error;
    side_of_names(&f.a, NAMES("some.words"));
    side_of_names(&f.b, NAMES("words.many"));
    struct td_match_options options = {.strategy = "fuzzy"};
    assert_ok(td_match_sides(&f.matches, &f.a.side, &f.b.side, &options, NULL, &error));
    assert_string_equal(text_of(&f.matches), "some.words=; =words.many");
    td_matches_release(&f.matches);
    options.threshold = 0.3;
    assert_ok(td_match_sides(&f.matches, &f.a.side, &f.b.side, &options, NULL, &error));
    assert_string_equal(text_of(&f.matches), "some.words=words.many fuzzy");
    options.threshold = 1.5;
    struct td_matches none;
    assert_fails(td_match_sides(&none, &f.a.side, &f.b.side, &options, NULL, &error), TDBG_MISUSE,
                 "a threshold of 1.5 for similar names, not within 0 and 1");
    release(&f);
}

static void fused_parts(void **state)
{
    (void)state;
    assert_matches(
        NAMES("0_query.pth", "0_key.pth", "0_value.pth"), NAMES("0_qkv.pth"), NULL,
        "0_query.pth=0_qkv.pth[0/3] fused; 0_key.pth=0_qkv.pth[1/3] fused; 0_value.pth=0_qkv.pth[2/3] fused");
    assert_matches(
        NAMES("model.layers.1.mlp.gate_up_proj.weight"),
        NAMES("blk.1.ffn_up.weight", "blk.1.ffn_gate.weight", "blk.2.ffn_gate.weight"), NULL,
        "model.layers.1.mlp.gate_up_proj.weight[0/2]=blk.1.ffn_gate.weight fused; "
        "model.layers.1.mlp.gate_up_proj.weight[1/2]=blk.1.ffn_up.weight fused; =blk.2.ffn_gate.weight");
    /* Weights and biases are fused each by themselves; a part that is missing leaves the rest alone. */
    assert_matches(
        NAMES("h.0.attn.c_attn.weight", "h.0.attn.c_attn.bias"),
        NAMES("blk.0.attn_q.weight", "blk.0.attn_k.weight", "blk.0.attn_v.weight", "blk.0.attn_q.bias"),
        "fused",
        "h.0.attn.c_attn.weight[0/3]=blk.0.attn_q.weight fused; "
        "h.0.attn.c_attn.weight[1/3]=blk.0.attn_k.weight fused; "
        "h.0.attn.c_attn.weight[2/3]=blk.0.attn_v.weight fused; =blk.0.attn_q.bias; h.0.attn.c_attn.bias=");
}

static void fused_by_torch(void **state)
{
    (void)state;
    assert_matches(NAMES("layers.0.self_attn.in_proj_weight", "layers.0.self_attn.in_proj_bias"),
                   NAMES("blk.0.attn_q.weight", "blk.0.attn_k.weight", "blk.0.attn_v.weight",
                         "blk.0.attn_q.bias", "blk.0.attn_k.bias", "blk.0.attn_v.bias"),
                   "fused",
                   "layers.0.self_attn.in_proj_weight[0/3]=blk.0.attn_q.weight fused; "
                   "layers.0.self_attn.in_proj_weight[1/3]=blk.0.attn_k.weight fused; "
                   "layers.0.self_attn.in_proj_weight[2/3]=blk.0.attn_v.weight fused; "
                   "layers.0.self_attn.in_proj_bias[0/3]=blk.0.attn_q.bias fused; "
                   "layers.0.self_attn.in_proj_bias[1/3]=blk.0.attn_k.bias fused; "
                   "layers.0.self_attn.in_proj_bias[2/3]=blk.0.attn_v.bias fused");
}

static void fill(float *data, size_t count, unsigned seed)
{
    for (size_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        data[i] = (float)(seed >> 8) / (float)(1 << 24) - 0.5f;
    }
}

static void by_shape_and_values(void **state)
{
    (void)state;
    static float one[600], two[600], other[600], turned[600], six[6], four[4], seven[1] = {7}, eight[1] = {8};
    fill(one, 600, 1);
    fill(two, 600, 2);
    fill(other, 600, 3);
    for (int i = 0; i < 600; i++) {
        two[i] = two[i] * two[i];
        turned[i % 30 * 20 + i / 30] = one[i];
    }
    struct td_tensor a[] = {
        float_tensor("a.one", SHAPE(2, 20, 30), one),     float_tensor("a.two", SHAPE(2, 20, 30), two),
        float_tensor("a.other", SHAPE(2, 20, 30), other), float_tensor("a.six", SHAPE(2, 2, 3), six),
        float_tensor("a.seven", SHAPE(0), seven),         float_tensor("1_pre", SHAPE(1, 4), four),
    };
    struct td_tensor b[] = {
        float_tensor("b.x", SHAPE(3, 1, 20, 30), two), float_tensor("b.y", SHAPE(2, 30, 20), turned),
        float_tensor("b.z", SHAPE(3, 3, 1, 2), six),   float_tensor("b.eight", SHAPE(1, 1), eight),
        float_tensor("2_post", SHAPE(1, 4), four),
    };
    struct fixture f;
    side_of_tensors(&f.a, a, 6);
    side_of_tensors(&f.b, b, 5);
    assert_ok(td_match_sides(&f.matches, &f.a.side, &f.b.side,
                             &(struct td_match_options){.strategy = "shape"}, NULL, NULL));
    assert_string_equal(text_of(&f.matches), "1_pre=; =2_post; a.one=b.y shape; a.two=b.x shape; a.other=; "
                                             "a.six=b.z shape; =b.eight; a.seven=");
    release(&f);
}

static void by_rule(void **state)
{
    (void)state;
    assert_matches(NAMES("blk.0.attn_q", "blk.1.attn_q", "other"),
                   NAMES("layers.1.q_proj", "layers.0.q_proj"),
                   "regex:blk\\.(\\d+)\\.attn_q=>layers.\\1.q_proj",
                   "blk.0.attn_q=layers.0.q_proj regex; blk.1.attn_q=layers.1.q_proj regex; other=");
    assert_matches(NAMES("a1x", "a22x", "c$"), NAMES("b1", "b22", "d$"),
                   "regex:a(\\d{1,2})x=>b$1,regex:c=>d,auto", "a1x=b1 regex; a22x=b22 regex; c$=d$ regex");
    assert_matches(NAMES("new.x"), NAMES("old.x"), "regex:old=>new", "new.x=old.x regex"); /* from B to A */
    assert_matches(NAMES("q1"), NAMES("m.pth:k1"), "regex:q(\\d)=>k\\1", "q1=m.pth:k1 regex");
}

static void assert_refused(const char *strategy, tdbg_status status, const char *message)
{
    struct fixture f;
    struct tdbg_error error;
    side_of_names(&f.a, NAMES("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!"));
    side_of_names(&f.b, NAMES("b"));
    assert_fails(td_match_sides(&f.matches, &f.a.side, &f.b.side,
                                &(struct td_match_options){.strategy = strategy}, NULL, &error),
                 status, message);
    side_free(&f.a);
    side_free(&f.b);
}

static void bad_chains(void **state)
{
    (void)state;
    assert_refused("stage,nonsense", TDBG_MISUSE,
                   "no matching strategy 'nonsense' (auto, stage, value, exact, fuzzy, fused, shape, "
                   "weights, regex:FROM=>TO, "
                   "program:COMMAND, manual)");
    assert_refused("regex", TDBG_MISUSE, "matching strategy regex needs an argument: regex:…");
    assert_refused("exact:x", TDBG_MISUSE, "matching strategy exact takes no argument");
    assert_refused("regex:abc", TDBG_MISUSE, "rule 'abc' is not regex:FROM=>TO");
    assert_refused("regex:ab(c=>d", TDBG_MISUSE,
                   "regular expression 'ab(c': missing closing parenthesis (at character 4)");
    assert_refused("regex:a=>\\7", TDBG_MISUSE,
                   "rule on 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!': unknown substring");
    assert_refused("regex:(a+)+$=>b", TDBG_MISUSE,
                   "rule on 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!': match limit exceeded");
}

static void manual_pairs_come_first(void **state)
{
    (void)state;
    struct fixture f;
    struct tdbg_error error;
    side_of_names(&f.a, NAMES("0_query", "0_key", "rank0/0_value", "rank1/0_value"));
    side_of_names(&f.b, NAMES("0_query", "0_key", "v"));
    struct td_name_pair pairs[] = {{.a = "0_query", .b = "0_key"},
                                   {.a = "rank0/0_value", .b = "v", .by_program = true}};
    struct td_match_options options = {.manual = pairs, .manual_count = 2};
    assert_ok(td_match_sides(&f.matches, &f.a.side, &f.b.side, &options, NULL, &error));
    assert_string_equal(text_of(&f.matches), "=0_query; 0_query=0_key manual; 0_key=; 0_value=v program");
    struct td_matches none;
    pairs[1] = (struct td_name_pair){.a = "0_query", .b = "v"};
    assert_fails(td_match_sides(&none, &f.a.side, &f.b.side, &options, NULL, &error), TDBG_MISUSE,
                 "the list of pairs has '0_query' of A in more than one pair");
    pairs[1] = (struct td_name_pair){.a = "0_key", .b = "nobody"};
    assert_fails(td_match_sides(&none, &f.a.side, &f.b.side, &options, NULL, &error), TDBG_NOTFOUND,
                 "the list of pairs names 'nobody', which is not in B");
    release(&f);
}

static void shards_of_one_side(void **state)
{
    (void)state;
    assert_matches(NAMES("rank0/0_query.pth", "rank1/0_query.pth", "rank0/norm.pth", "rank1/norm.pth"),
                   NAMES("0_query.pth", "norm.pth"), NULL,
                   "0_query.pth=0_query.pth stage; norm.pth=norm.pth exact");
}

static void empty_sides(void **state)
{
    (void)state;
    const char *const none[] = {NULL};
    assert_matches(none, none, NULL, "");
    assert_matches(none, NAMES("b"), NULL, "=b");
    assert_matches(NAMES("a"), none, NULL, "a=");
}

enum { MANY = 20000 };

static void many(struct test_side *s, char (*names)[64], const char *const *formats, int kinds)
{
    struct td_tensor *tensors = calloc(MANY, sizeof *tensors);
    for (int i = 0; i < MANY; i++) {
        snprintf(names[i], sizeof names[i], formats[i % kinds], i / kinds);
        tensors[i] = float_tensor(names[i], SHAPE(2, 2, 3), NULL);
    }
    side_of_tensors(s, tensors, MANY);
    free(tensors);
}

static size_t match_many(const char *const *a_formats, const char *const *b_formats, int kinds)
{
    static char a_names[MANY][64], b_names[MANY][64];
    struct fixture f;
    many(&f.a, a_names, a_formats, kinds);
    many(&f.b, b_names, b_formats, kinds);
    clock_t start = clock();
    assert_ok(td_match_sides(&f.matches, &f.a.side, &f.b.side, NULL, NULL, NULL));
    double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    print_message("# %d names a side: %.3f s\n", MANY, seconds);
    assert_true(seconds < 5); /* a fraction of a second; sanitizers take longer */
    size_t paired = 0;
    for (size_t i = 0; i < f.matches.count; i++)
        paired += f.matches.pairs[i].a && f.matches.pairs[i].b;
    release(&f);
    return paired;
}

static void twenty_thousand_names(void **state)
{
    (void)state;
    assert_int_equal(match_many(NAMES("%d_query.pth", "%d_key.pth"), NAMES("%d_query.npy", "%d_key.npy"), 2),
                     MANY);
    assert_int_equal(
        match_many(NAMES("model.layers.%d.self_attn.q_proj.weight", "model.layers.%d.aux.left.raw"),
                   NAMES("blk.%d.attn_q.weight", "blk.%d.raw.left.aux"), 2),
        MANY);
    /* No layers, no common names: the worst case of similarity and of shapes. */
    assert_int_equal(match_many(NAMES("common.words.x%d.here"), NAMES("other.words.y%d.there"), 1), 0);
    assert_int_equal(match_many(NAMES("common.words.x%d.here"), NAMES("here.common_x%d_words.z"), 1), MANY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_stage),
        cmocka_unit_test(layers_may_be_offset),
        cmocka_unit_test(by_exact_name),
        cmocka_unit_test(by_family),
        cmocka_unit_test(one_stack_each),
        cmocka_unit_test(by_similar_words),
        cmocka_unit_test(threshold_is_adjustable),
        cmocka_unit_test(fused_parts),
        cmocka_unit_test(fused_by_torch),
        cmocka_unit_test(by_shape_and_values),
        cmocka_unit_test(by_rule),
        cmocka_unit_test(bad_chains),
        cmocka_unit_test(manual_pairs_come_first),
        cmocka_unit_test(shards_of_one_side),
        cmocka_unit_test(empty_sides),
        cmocka_unit_test(twenty_thousand_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
