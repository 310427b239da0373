// The mappings that people want most often, made from both shapes: as they were compared, axes moved, heads merged into
// one axis or apart, and, where none of that fits, what both sides have.
import type { PairDetail } from "../../model";
import { type AxisCut, cutText, placesOf, usualCount } from "./cuts";

export interface Suggestion {
  name: string;
  a: string;
  b: string;
}

/** A side without its leading axes of size 1: which axes are left, and their sizes. */
interface Core {
  ndim: number;
  axes: number[];
  sizes: number[];
}

const range = (from: number, to: number) => Array.from({ length: Math.max(to - from, 0) }, (_, i) => from + i);

const isSame = (p: readonly number[], q: readonly number[]) => p.length === q.length && p.every((size, i) => size === q[i]);

function coreOf(shape: readonly number[]): Core {
  const first = shape.findIndex((size) => size !== 1);
  const axes = first < 0 ? [] : range(first, shape.length);
  return { ndim: shape.length, axes, sizes: axes.map((axis) => shape[axis] ?? 0) };
}

/** For each axis of the common shape, which axis of the side it is; null where steps do more than move axes. */
function axesThrough(steps: readonly string[], side: "a" | "b", ndim: number): number[] | null {
  let axes = Array.from({ length: ndim }, (_, i) => i);
  for (const step of steps) {
    const [, whose, verb, list] = /^([ab]): (\w+) ([\d,]+)$/.exec(step) ?? [];
    if (step.startsWith(`${side}: `) && !verb) return null;
    if (whose !== side || list === undefined) continue;
    const numbers = list.split(",").map(Number);
    if (verb === "squeeze") axes = axes.filter((_, i) => !numbers.includes(i));
    else if (verb === "permute") axes = numbers.map((i) => axes[i] ?? 0);
    else return null;
  }
  return axes;
}

/** A slice of a side: `places[k]` is what its axis `axes[k]` gets; axes that are not named get their first index. */
function spread(ndim: number, axes: readonly number[], places: readonly AxisCut[]): string {
  const cuts: AxisCut[] = Array.from({ length: ndim }, () => ({ from: 0, count: null }));
  axes.forEach((axis, k) => (cuts[axis] = places[k] ?? { from: 0, count: null }));
  return cutText(cuts);
}

/** Two axes of `long`, the first of them counting slower, that are one axis of `short`; the other axes are the same. */
function* mergers(long: Core, short: Core) {
  if (long.sizes.length !== short.sizes.length + 1) return;
  for (const [i, slow] of long.sizes.entries())
    for (const [j, fast] of long.sizes.entries())
      for (const [k, merged] of short.sizes.entries())
        if (i !== j && slow > 1 && fast > 1 && slow * fast === merged
          && isSame(long.sizes.filter((_, n) => n !== i && n !== j), short.sizes.filter((_, n) => n !== k)))
          yield { slow: long.axes[i] ?? 0, fast: long.axes[j] ?? 0, fastSize: fast, merged: short.axes[k] ?? 0 };
}

const swap = (axes: readonly number[], i: number, j: number) => axes.map((axis, k) => (k === i ? axes[j] : k === j ? axes[i] : axis) ?? 0);

export function suggestions(detail: PairDetail, at: readonly number[]): Suggestion[] {
  if (!detail.a || !detail.b) return [];
  const found: Suggestion[] = [];
  const add = (name: string, a: string, b: string) => {
    if (!found.some((s) => s.a === a && s.b === b)) found.push({ name, a, b });
  };
  const [a, b] = [coreOf(detail.a.shape), coreOf(detail.b.shape)];
  const steps = detail.layout?.steps ?? [];
  const [throughA, throughB] = [axesThrough(steps, "a", a.ndim), axesThrough(steps, "b", b.ndim)];
  if (detail.layout && throughA && throughB) {
    const places = placesOf(detail.as_real ? detail.shape.slice(0, -1) : detail.shape, at); // a side's own values are moduli
    add("as compared", spread(a.ndim, throughA, places), spread(b.ndim, throughB, places));
  }

  const places = placesOf(a.sizes, at);
  if (isSame(a.sizes, b.sizes))
    add(a.ndim === b.ndim ? "index by index" : "leading 1s dropped", spread(a.ndim, a.axes, places), spread(b.ndim, b.axes, places));
  for (const i of range(0, a.sizes.length)) {
    for (const j of range(i + 1, a.sizes.length)) {
      const swapped = swap(b.axes, i, j);
      if (isSame(a.sizes, swap(b.sizes, i, j)))
        add(`axes ${i} and ${j} swapped`, spread(a.ndim, a.axes, places), spread(b.ndim, swapped, places));
    }
  }

  for (const [long, short, isA] of [[a, b, true], [b, a, false]] as const) {
    for (const { slow, fast, fastSize, merged } of mergers(long, short)) {
      const run = [{ from: 0, count: Math.min(usualCount, fastSize) }];
      const [apart, together] = [spread(long.ndim, [fast], run), spread(short.ndim, [merged], run)];
      const [whole, parts] = isA ? ["B", "A"] : ["A", "B"];
      add(`axis ${merged} of ${whole} is axes ${slow} and ${fast} of ${parts}`, isA ? apart : together, isA ? together : apart);
    }
  }

  const common = a.sizes.map((size, i) => Math.min(size, b.sizes[i] ?? 0));
  if (found.length === 0 && a.sizes.length === b.sizes.length && !common.includes(0)) {
    const shared = placesOf(common, at);
    add("what both have", spread(a.ndim, a.axes, shared), spread(b.ndim, b.axes, shared));
  }
  return found;
}
