// Filters, sorting, grouping and moving: what the list makes of a result.
import assert from "node:assert/strict";
import { test } from "node:test";
import { arrange, filtered, moved, regexIn, sorted, wordsTest } from "../src/pairs/arrange";
import { findingsOf, isLost, lostWord } from "../src/pairs/measure";

const metrics = (error, more = {}) => ({ rel_l2: error, nan_a: 0, nan_b: 0, inf_a: 0, inf_b: 0, ...more });
const tensor = (name, shape = [2]) => ({ name, dtype: "float32", shape });

function pair(index, name, verdict, error, more = {}) {
  const compared = error === null ? null : metrics(error);
  return { index, layer: null, stage: name, name, verdict, strategy: "exact", reason: "", a: tensor(name), b: tensor(name), layout: null, metrics: compared, ...more };
}

const PAIRS = [
  pair(0, "l9.q", "within", 1e-3, { layer: 9, stage: "q" }),
  pair(1, "l9.k", "diverged", 0.5, { layer: 9, stage: "k", diagnosis: [{ kind: "scale", confidence: 1, detail: "" }] }),
  pair(2, "l10.q", "identical", 0, { layer: 10, stage: "q", a: tensor("l10.q", [3, 4]) }),
  pair(3, "l10.k", "diverged", 0.1, { layer: 10, stage: "k", metrics: metrics(0.1, { nan_b: 1 }) }),
  pair(4, "lone", "only_a", null, { b: null }),
  pair(5, "bad", "error", null),
];
const CHOICES = { group: "none", sort: "order", filters: new Set(), text: "", own: [] };
const all = () => true;
const indices = (pairs) => pairs.map((one) => one.index);

test("words must all occur, in any case, in a name or a diagnosis", () => {
  assert.deepEqual(indices(filtered(PAIRS, new Set(), wordsTest("L9 k"))), [1]);
  assert.deepEqual(indices(filtered(PAIRS, new Set(), wordsTest("scale"))), [1]);
  assert.deepEqual(["/a.b/", "/a/b", "/a", "a/", "//", "/", ""].map(regexIn), ["a.b", "a/b", "a", null, "/", null, null]);
});

test("filters by verdict add up; none is all", () => {
  assert.deepEqual(indices(filtered(PAIRS, new Set(["unmatched", "errors"]), all)), [4, 5]);
  assert.equal(filtered(PAIRS, new Set(), all).length, PAIRS.length);
});

test("numbers in names count as numbers", () => {
  assert.deepEqual(indices(sorted(PAIRS, "name", [])), [5, 1, 0, 3, 2, 4]);
});

test("a lost value is the largest difference, and what was not compared is last either way", () => {
  assert.deepEqual(indices(sorted(PAIRS, "worst", [])), [3, 1, 0, 2, 4, 5]);
  assert.deepEqual(indices(sorted(PAIRS, "best", [])), [2, 0, 1, 3, 4, 5]);
});

test("as many lost on both sides, at other places or with another sign, are lost all the same", () => {
  const both = { nan_a: 1, nan_b: 1, inf_a: 1, inf_b: 1, max_abs: 0 };
  const moved = pair(6, "moved", "diverged", 0, { metrics: metrics(0, both), worst: [{ index: [0], a: "nan", b: 1 }] });
  const turned = pair(7, "turned", "diverged", 0, { metrics: metrics(0, both), worst: [{ index: [0], a: "inf", b: "-inf" }] });
  const noneKept = pair(8, "none kept", "diverged", 0, { metrics: metrics(0, both) });
  const shared = pair(9, "shared", "diverged", 0.2, { metrics: metrics(0.2, { ...both, max_abs: 1 }), worst: [{ index: [0], a: 1, b: 2 }] });
  const same = pair(10, "same", "identical", 0, { metrics: metrics(0, both) });
  assert.deepEqual([moved, turned, noneKept, shared, same].map(isLost), [true, true, true, false, false]);
  assert.deepEqual([moved, turned].map(lostWord), ["NaN", "inf"]);
});

test("an own order of some leaves the others behind them", () => {
  assert.deepEqual(indices(sorted(PAIRS, "own", [3, 0])), [3, 0, 1, 2, 4, 5]);
});

test("groups come as their first pair does, folded or not", () => {
  const { rows, groups, pairs } = arrange(PAIRS, { ...CHOICES, group: "layer" }, all, (key) => key === "10");
  assert.deepEqual(rows.map((row) => (row.kind === "group" ? row.label : row.pair.index)), ["layer 9", "layer 10", 2, 3, "no layer"]);
  assert.equal(groups, 3);
  assert.deepEqual(indices(pairs), [0, 1, 2, 3, 4, 5]);
});

test("similarity has an order of its own", () => {
  const { rows } = arrange([...PAIRS].reverse(), { ...CHOICES, group: "similarity" }, all, () => false);
  assert.deepEqual(rows.map((row) => row.label),
    ["no error", "error 1e-4 to 1 %", "error 10 % to 100 %", "NaN or infinity on one side", "not compared", "without a partner"]);
});

test("a group that is alone is open", () => {
  assert.equal(arrange(PAIRS.slice(0, 2), { ...CHOICES, group: "layer" }, all, () => false).rows.length, 3);
});

test("moving before, after and to the end; beside itself nothing moves", () => {
  assert.deepEqual(moved([0, 1, 2, 3], [2], { before: 0 }), [2, 0, 1, 3]);
  assert.deepEqual(moved([0, 1, 2, 3], [0, 1], { after: 2 }), [2, 0, 1, 3]);
  assert.deepEqual(moved([0, 1, 2, 3], [1], null), [0, 2, 3, 1]);
  assert.deepEqual(moved([0, 1, 2, 3], [1], { before: 1 }), [0, 1, 2, 3]);
});

test("after a likely finding nobody is told that it is unknown", () => {
  const kinds = (...list) => findingsOf({ diagnosis: list.map(([kind, confidence]) => ({ kind, confidence, detail: "" })) }).map((one) => one.kind);
  assert.deepEqual(kinds(["scale", 0.99], ["bias", 0.4], ["unknown", 0.1]), ["scale", "bias"]);
  assert.deepEqual(kinds(["bias", 0.3], ["unknown", 0.1]), ["bias", "unknown"]);
  assert.deepEqual(kinds(["unknown", 0.5]), ["unknown"]);
  assert.deepEqual(findingsOf({}), []);
});
