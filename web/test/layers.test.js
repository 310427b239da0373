// Names with {L}: what is one thing in all layers, and what a pair by hand says of the others.
import assert from "node:assert/strict";
import { test } from "node:test";
import { arrange } from "../src/pairs/arrange";
import { aliasesOf, doubtOf, everyLayer, foundBy, isRenamed, layeredOf, templateOf } from "../src/pairs/layers";

const side = (name) => (name ? { name, dtype: "float32", shape: [2] } : null);
const pair = (index, layer, a, b, more = {}) => ({
  index, layer, stage: a ?? b, name: a ?? b, verdict: a ? (b ? "identical" : "only_a") : "only_b", strategy: "fuzzy", reason: "",
  a: side(a), b: side(b), layout: null, metrics: null, ...more,
});

test("the number of the layer, the first of several, becomes {L}", () => {
  assert.deepEqual(layeredOf(pair(0, 3, "m.3.expert.3.w"), "a"), { template: "m.{L}.expert.3.w", number: 3, known: true });
  assert.deepEqual(layeredOf(pair(0, 3, "q_03"), "a"), { template: "q_{L}", number: 3, known: true });
  assert.deepEqual(layeredOf(pair(0, 4, "m.3.w"), "a"), { template: "m.{L}.w", number: 3, known: false }, "counted from elsewhere");
  assert.equal(layeredOf(pair(0, 4, "m.3.w2"), "a"), null);
  assert.equal(layeredOf(pair(0, null, "m.3.w4"), "a"), null);
  assert.deepEqual(layeredOf(pair(0, null, null, "Qcur-7"), "b"), { template: "Qcur-{L}", number: 7, known: false });
});

test("what the server says goes before what can be guessed, where it fits", () => {
  const told = pair(0, 1, "x.1.y.1.z", "Q-5", { template: { a: "x.1.y.{L}.z", b: "Q-{L}" } });
  assert.equal(layeredOf(told, "a").template, "x.1.y.{L}.z");
  assert.deepEqual(layeredOf(told, "b"), { template: "Q-{L}", number: 5, known: true });
  assert.equal(layeredOf({ ...told, template: { a: "other.{L}", b: null } }, "a").template, "x.{L}.y.1.z");
  assert.equal(templateOf(told), "x.1.y.{L}.z → Q-{L}");
});

test("a pair by hand holds in every layer, by what lies between the numbers", () => {
  const q = (n) => layeredOf(pair(0, n, `q.${n}`), "a"), k = (n) => layeredOf(pair(0, null, null, `K-${n}`), "b");
  assert.deepEqual(everyLayer(q(3), k(3)), { a: "q.{L}", b: "K-{L}" });
  assert.deepEqual(everyLayer(q(3), k(4)), { a: "q.{L}", b: "K-{L+1}" });
  assert.deepEqual(everyLayer(q(3), k(1)), { a: "q.{L}", b: "K-{L-2}" });
  assert.equal(everyLayer(k(1), k(1)), null, "numbers of which none is known to be a layer's");
  assert.equal(everyLayer(q(3), null), null);
});

test("by template: one row for all layers, what stands alone is a row of its own, in its place", () => {
  const pairs = [pair(0, null, "embed", "emb"), pair(1, 0, "l.0.q", "Q-0"), pair(2, 0, "l.0.k"), pair(3, 1, "l.1.q", "Q-1"), pair(4, 1, "l.1.k"), pair(5, null, null, "odd")];
  const choices = { group: "template", sort: "order", filters: new Set(), text: "", own: [] };
  const { rows, groups } = arrange(pairs, choices, () => true, (key) => key.startsWith("l.{L}.q"));
  assert.deepEqual(rows.map((row) => (row.kind === "group" ? row.label : row.pair.index)), [0, "l.{L}.q → Q-{L}", 1, 3, "l.{L}.k", 5]);
  assert.equal(groups, 4);
});

test("doubt below nine in ten, and never of what has no partner; the other names", () => {
  assert.deepEqual([0.95, 0.9, 0.72, undefined].map((sure) => doubtOf(pair(0, 0, "a", "b", { sure }))), [null, null, 0.72, null]);
  assert.equal(doubtOf(pair(0, 0, "a", null, { sure: 0 })), null);
  assert.deepEqual(aliasesOf(pair(0, 0, "a", "b", { aliases: { a: ["x", "a"], b: [] } }), "a"), ["x"]);
});

test("another name in B is one that differs in more than the ending of its file", () => {
  assert.deepEqual([["a.b", "a.b"], ["a.npy", "a"], ["a.npy", "a.pt"], ["a.npy", "b.npy"], ["a", "a.weight"]].map(([a, b]) => isRenamed(pair(0, 0, a, b))),
    [false, false, false, true, true]);
  assert.deepEqual([isRenamed(pair(0, 0, "a", null)), isRenamed(pair(0, 0, null, "b"))], [false, false]);
  assert.deepEqual(["manual", "fuzzy", "stage", "shape"].map(foundBy), ["hand", "similar names", "layer and stage", "shape"]);
});
