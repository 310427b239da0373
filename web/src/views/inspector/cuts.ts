// Manual mapping: each side cut by its own indices on its own shape. Here are the slices as something to edit;
// mappings.ts has those that people want most often.
import { clip } from "./indexing";

/** One axis of a slice: a single index, or a run of them. */
export interface AxisCut {
  from: number;
  /** Null drops the axis. */
  count: number | null;
}

/** The server's limit for a side. */
export const mostMapped = 4096;
export const usualCount = 10;

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

/** The place looked at, with the first values of its last axis; as far as the axes are the same on both sides. An axis
 * without indices is kept as it is. */
export function placesOf(shape: readonly number[], at: readonly number[]): AxisCut[] {
  return shape.map((size, axis) => (axis === shape.length - 1 || size === 0
    ? { from: 0, count: Math.min(usualCount, size) }
    : { from: clip(at[axis] ?? 0, 0, size - 1), count: null }));
}

/** Where there is nothing to suggest: the first values of both. */
export const firstValues = (shape: readonly number[]) => cutText(placesOf(shape, shape.map(() => 0)));
