// Mappings that the page offers for two shapes.
import assert from "node:assert/strict";
import { test } from "node:test";
import { firstValues } from "../src/views/inspector/cuts";
import { suggestions } from "../src/views/inspector/mappings";

const offers = (a, b, { layout = null, shape = [], at = [] } = {}) =>
  Object.fromEntries(suggestions({ a: { shape: a }, b: { shape: b }, layout, shape }, at).map((s) => [s.name, `${s.a} | ${s.b}`]));

test("shapes that are the same, or but for leading 1s", () => {
  assert.deepEqual(offers([5, 20], [5, 20], { at: [3, 0] }), { "index by index": "3,0:10 | 3,0:10" });
  assert.deepEqual(offers([1, 5, 4], [5, 4]), { "leading 1s dropped": "0,0,0:4 | 0,0:4" });
});

test("as it was compared comes first, and once", () => {
  const layout = { steps: ["b: squeeze 0", "b: permute 1,0,2"] };
  assert.deepEqual(offers([6, 3, 12], [1, 3, 6, 12], { layout, shape: [6, 3, 12], at: [2, 1, 0] }), { "as compared": "2,1,0:10 | 0,1,2,0:10" });
});

test("complex numbers: the axis of their parts is none of a side's own", () => {
  const pair = { a: { shape: [6, 20] }, b: { shape: [6, 20] }, layout: { steps: [] }, shape: [6, 20, 2], as_real: true };
  assert.deepEqual(suggestions(pair, [2, 7, 1])[0], { name: "as compared", a: "2,0:10", b: "2,0:10" });
});

test("axes that were swapped", () => {
  assert.deepEqual(offers([6, 3], [3, 6], { at: [4, 0] }), { "axes 0 and 1 swapped": "4,0:3 | 0:3,4" });
});

test("heads in an axis of their own on one side, merged on the other", () => {
  assert.deepEqual(offers([16, 76, 64], [1, 76, 1024]), { "axis 2 of B is axes 0 and 2 of A": "0,0,0:10 | 0,0,0:10", "axis 2 of B is axes 2 and 0 of A": "0:10,0,0 | 0,0,0:10" });
  assert.deepEqual(Object.keys(offers([76, 1024], [76, 16, 64])), ["axis 1 of A is axes 1 and 2 of B", "axis 1 of A is axes 2 and 1 of B"]);
});

test("what both have, where sizes differ", () => {
  assert.deepEqual(offers([1, 16, 76, 64], [1, 7, 76, 8], { at: [12, 5, 0] }), { "what both have": "0,6,5,0:8 | 0,6,5,0:8" });
});

test("nothing, where there is nothing in common", () => {
  assert.deepEqual(offers([5], [2, 3]), {});
  assert.deepEqual(offers([0, 4], [3, 4]), {});
  assert.equal(firstValues([0, 4]), "0:0,0:4");
  assert.deepEqual(suggestions({ a: { shape: [3] }, b: null, layout: null, shape: [3] }, []), []);
  assert.deepEqual(offers([], []), { "index by index": " | " });
});
