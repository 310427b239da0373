// Manual mapping: each side cut by its own indices on its own shape. Here are the slices as something to edit, and
// the mappings that people want most often.
import type { PairDetail } from "../../model";
import { clip } from "./indexing";

/** One axis of a slice: a single index, or a run of them. */
export interface AxisCut {
  from: number;
  /** Null drops the axis. */
  count: number | null;
}

export interface Suggestion {
  name: string;
  a: string;
  b: string;
}

/** The server's limit for a side. */
export const mostMapped = 4096;
const usualCount = 10;

export const cutText = (cuts: readonly AxisCut[]) =>
  cuts.map(({ from, count }) => (count === null ? String(from) : `${from}:${from + count}`)).join(",");

/** Reads what cutText writes, and ":" for a whole axis; null for what needs no sliders (steps, "...") or is wrong. */
export function parseCut(text: string, shape: readonly number[]): AxisCut[] | null {
  const parts = text.trim() === "" ? [] : text.split(",").map((part) => part.trim());
  if (parts.length > shape.length) return null;
  const cuts: AxisCut[] = [];
  for (const [axis, size] of shape.entries()) {
    const part = parts[axis] ?? ":";
    const match = /^(\d*)(:?)(\d*)$/.exec(part);
    if (!match || part === "") return null;
    const from = Number(match[1] || 0);
    const to = match[3] ? Number(match[3]) : size;
    if (from >= size && size > 0) return null;
    cuts.push({ from, count: match[2] ? clip(to - from, 0, size - from) : null });
  }
  return cuts;
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

const range = (from: number, to: number) => Array.from({ length: Math.max(to - from, 0) }, (_, i) => from + i);

/** The place looked at, with the first values of its last axis; as far as the axes are the same on both sides. */
function placesOf(shape: readonly number[], at: readonly number[]): AxisCut[] {
  return shape.map((size, axis) => (axis === shape.length - 1
    ? { from: 0, count: Math.min(usualCount, size) }
    : { from: clip(at[axis] ?? 0, 0, size - 1), count: null }));
}

const withoutLeadingOnes = (shape: readonly number[]) => {
  const first = shape.findIndex((size) => size !== 1);
  return first < 0 ? shape.length : first;
};

export function suggestions(detail: PairDetail, at: readonly number[]): Suggestion[] {
  const { a, b } = detail;
  if (!a || !b) return [];
  const found: Suggestion[] = [];
  const add = (name: string, textA: string, textB: string) => {
    if (!found.some((s) => s.a === textA && s.b === textB)) found.push({ name, a: textA, b: textB });
  };
  const steps = detail.layout?.steps ?? [];
  const throughA = axesThrough(steps, "a", a.shape.length);
  const throughB = axesThrough(steps, "b", b.shape.length);
  if (detail.layout && throughA && throughB) {
    const places = placesOf(detail.shape, at);
    add("as compared", spread(a.shape.length, throughA, places), spread(b.shape.length, throughB, places));
  }
  const [skipA, skipB] = [withoutLeadingOnes(a.shape), withoutLeadingOnes(b.shape)];
  const [coreA, coreB] = [a.shape.slice(skipA), b.shape.slice(skipB)];
  const [axesA, axesB] = [range(skipA, a.shape.length), range(skipB, b.shape.length)];
  const isSame = (p: readonly number[], q: readonly number[]) => p.length === q.length && p.every((size, i) => size === q[i]);
  const places = placesOf(coreA, at);
  if (isSame(coreA, coreB)) {
    add(skipA === skipB ? "index by index" : "leading 1s dropped", spread(a.shape.length, axesA, places), spread(b.shape.length, axesB, places));
  }
  for (const i of range(0, coreA.length)) {
    for (const j of range(i + 1, coreA.length)) {
      const swapped = [...axesB];
      [swapped[i], swapped[j]] = [swapped[j] ?? 0, swapped[i] ?? 0];
      if (!isSame(coreA, swapped.map((axis) => b.shape[axis] ?? 0))) continue;
      add(`axes ${i} and ${j} swapped`, spread(a.shape.length, axesA, places), spread(b.shape.length, swapped, places));
    }
  }
  return found;
}

/** Where there is nothing to suggest: the first values of both. */
export const firstValues = (shape: readonly number[]) => cutText(placesOf(shape, shape.map(() => 0)));
