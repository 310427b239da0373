// Numbers and names as text.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ago, aroundNumber, bytes, count, ends, reasonOf, short, sideNames, similarity, statistic } from "../src/format";

test("three digits that matter, whatever the size", () => {
  const cases = [[0.4264, "0.426"], [1234.5, "1230"], [1e-7, "1.00e-7"], [-0, "0"], [123456, "1.23e5"], ["nan", "NaN"], ["-inf", "-inf"], [null, ""]];
  for (const [value, text] of cases) assert.equal(short(value), text);
});

test("large counts have their thousands apart, as in English", () => {
  const english = new Intl.NumberFormat("en-US");
  for (const n of [0, 7, 999, 1000, 12345, 999999, 1000000, 67108864, -4096, Number.MAX_SAFE_INTEGER]) assert.equal(count(n), english.format(n));
});

test("a cosine near one says what is missing", () => {
  assert.equal(similarity(0.9999955), "1 − 4.5e-6");
  assert.equal(similarity(1), "1");
  assert.equal(similarity(1 - 2.2e-16), "1");
  assert.equal(similarity(0.90453), "0.9045");
});

test("a statistic of too few values does not exist, and looks like no NaN of the tensor", () => {
  assert.equal(statistic("nan"), "—");
  assert.equal(statistic(0.12345), "0.123");
  assert.equal(statistic("-inf"), "-inf");
});

test("a long name keeps its end, cut at a separator, and loses nothing", () => {
  for (const name of ["model.layers.12.self_attn.q_proj.weight", "short", "x".repeat(60)]) assert.equal(ends(name).join(""), name);
  assert.deepEqual(ends("short"), ["", "short"]);
  assert.equal(ends("model.layers.12.self_attn.q_proj.weight")[1], ".q_proj.weight");
  assert.equal(ends("runs/llama-training-2026-11-17T20-00-00")[1], "-11-17T20-00-00");
  for (let n = 10; n < 30; n++) assert.ok(ends("😀".repeat(n)).concat(ends("x" + "😀".repeat(n))).every((part) => part.isWellFormed()));
});

test("the number of a layer is not cut, the first where there are several", () => {
  const parts = (name) => aroundNumber(ends(name)[0]);
  assert.deepEqual(parts("base.model.layers.12.self_attn.q_proj.weight"), ["base.model.", "layers.12", ".self_attn"]);
  assert.deepEqual(parts("model.layers.3.mlp.experts.11.gate_up_proj.weight"), ["model.", "layers.3", ".mlp.experts.11.gate"]);
  assert.deepEqual(parts("layer 3, mlp.experts.11.gate_up_proj.weight"), ["", "layer 3", ", mlp.experts.11.gate"]);
  assert.deepEqual(parts("blk.0.attn_output_of_some_kind.weight"), ["", "blk.0", ".attn_output_of"]);
  assert.deepEqual(parts("version2.of_a_name_without_numbers.weight"), [ends("version2.of_a_name_without_numbers.weight")[0], "", ""]);
});

test("a reason is told without the path that stands beside it", () => {
  assert.equal(reasonOf("/tmp/a.pth: not a tensor file", ["/tmp/a.pth", ""]), "not a tensor file");
  assert.equal(reasonOf("/tmp/a.zip: b.pth: cut short", ["/tmp/b", "/tmp/a.zip"]), "b.pth: cut short");
  assert.equal(reasonOf("too large: /tmp/a", ["/tmp/a"]), "too large: /tmp/a");
});

test("inputs are told apart by as much of their paths as it takes", () => {
  const side = (path) => ({ name: path, path });
  assert.deepEqual(sideNames(side("/runs/a.zip"), side("/runs/b.zip")), ["a.zip", "b.zip"]);
  assert.deepEqual(sideNames(side("/one/dump/x"), side("/two/dump/x")), ["one/dump/x", "two/dump/x"]);
  assert.deepEqual(sideNames(side("/same"), side("/same")), ["same", "same"]);
});

test("sizes and times", () => {
  assert.equal(bytes(999), "999 B");
  assert.equal(bytes(500_000_000), "500 MB");
  assert.equal(ago(1000, 1030), "just now");
  assert.equal(ago(1000, 1000 + 7300), "2 h ago");
});
