// The settings as a form has them, there and back.
import assert from "node:assert/strict";
import { test } from "node:test";
import { formOf, placeError, settingsOf } from "../src/views/comparison/settingsForm";

test("what came from the server goes back unchanged", () => {
  const cases = [{}, { match: "exact" }, { match: "regex:a(\\d)=>b\\1,auto", threshold: 0.4 }, { match: "regex:a(\\d)=>b\\1" }, { match: "exact,shape" }, { policy: "strict" },
    { rtol: 0, atol: 1 }, { reference: "/r" }, { layout: "a b -> b a", pairs: [{ a: "x", b: "y" }], top: 9 }, { coverage: 0, names: "# ours\nq{L} = query\n" }];
  for (const settings of cases) assert.deepEqual(settingsOf(formOf(settings)), { settings, errors: {} });
});

test("the defaults drop what no field shows", () => {
  const form = formOf({ match: "exact", pairs: [{ a: "x", b: "y" }], top: 9 });
  assert.deepEqual(settingsOf({ ...form, ...formOf({}) }), { settings: {}, errors: {} });
});

test("what makes no sense is said at its field", () => {
  const errors = (changes) => Object.keys(settingsOf({ ...formOf({}), ...changes }).errors);
  assert.deepEqual(errors({ threshold: "7" }), ["threshold"]);
  assert.deepEqual(errors({ coverage: "1.1" }), ["coverage"]);
  assert.deepEqual(errors({ strategy: "regex" }), ["from"]);
  assert.deepEqual(errors({ rule: "tolerance", rtol: "x" }), ["rtol"]);
  assert.deepEqual(errors({ rule: "reference" }), ["reference"]);
});

test("a sentence of the server finds its field, or the foot of the form", () => {
  const regex = { ...formOf({}), strategy: "regex" };
  assert.deepEqual(Object.keys(placeError("regular expression '(': missing", regex)), ["from"]);
  assert.deepEqual(Object.keys(placeError('"threshold" is not a number', regex)), ["threshold"]);
  assert.deepEqual(Object.keys(placeError("\"names\": line 2: no '='", regex)), ["names"]);
  assert.deepEqual(Object.keys(placeError("still running", regex)), ["form"]);
});
