// What the dashboard of a run draws.
import assert from "node:assert/strict";
import { test } from "node:test";
import { bytes, duration } from "../src/format";
import { curveOf, labelsOf, roundTicks, sampleOf } from "../src/views/runs/curve";

test("a point stands for one value, or for many", () => {
  assert.deepEqual(sampleOf([3, 1.5]), { step: 3, low: 1.5, high: 1.5, last: 1.5 });
  assert.deepEqual(sampleOf([3, 1, "inf", 2]), { step: 3, low: 1, high: Infinity, last: 2 });
});

test("a line breaks where a value is not finite, and the gap has its width", () => {
  const curve = curveOf([[0, 1], [1, 2], [2, "nan"], [3, "nan"], [4, 3]], 200, 100, false);
  assert.equal(curve.line.match(/M/g).length, 2);
  assert.deepEqual(curve.gaps, [[curve.x(2), curve.x(3)]]);
  assert.equal(curve.band, "");
});

test("extremes make a band, and zero has no place on a logarithmic scale", () => {
  assert.match(curveOf([[0, 1, 3, 2], [8, 2, 5, 4]], 200, 100, false).band, /^M.*Z$/);
  const log = curveOf([[0, 0], [1, 10], [2, 100]], 200, 100, true);
  assert.equal(log.line.match(/[ML]/g).length, 2);
  assert.deepEqual(log.ticks.map((tick) => tick.label), ["10", "100"]);
});

test("ticks are round, and a constant has a scale too", () => {
  assert.deepEqual(roundTicks(0.1, 0.73), [0.2, 0.4, 0.6000000000000001]);
  const flat = curveOf([[0, 3e-4], [1, 3e-4]], 200, 100, false);
  assert.ok(flat.ticks.length >= 2 && Number.isFinite(flat.ticks[0].y));
  assert.ok(curveOf([], 200, 100, false).line === "");
});

test("durations", () => {
  assert.deepEqual([0, 2e-6, 0.0123, 1.5, 200, 7200].map((seconds) => duration(seconds)), ["0", "2 µs", "12.3 ms", "1.5 s", "3.33 min", "2 h"]);
});

test("ticks that are close together have the digits that tell them apart", () => {
  assert.deepEqual(labelsOf([1e6, 2e6, 3e6], bytes), ["1.00 MB", "2.00 MB", "3.00 MB"]);
  assert.deepEqual(labelsOf([251.5e6, 252e6, 252.5e6], bytes), ["251.5 MB", "252.0 MB", "252.5 MB"]);
  assert.deepEqual(labelsOf([1.0001, 1.0002], duration), ["1.0001 s", "1.0002 s"]);
});
