// Where things are on the chart of errors: pairs from left to right as they are executed, errors upwards on a log
// scale. Zero and lost values (NaN, infinities, nothing compared) have no logarithm: they get a lane of their own
// at the bottom and at the top.
import type { Pair } from "../../model";
import { errorOf, isLost, isUnmatched } from "../../pairs/measure";

export interface Point {
  pair: Pair;
  x: number;
  y: number;
  floorY: number | null;
}

export interface Band {
  label: string;
  from: number;
  to: number;
}

export interface Scale {
  left: number;
  right: number;
  top: number;
  bottom: number;
  step: number;
  points: Point[];
  bands: Band[];
  ticks: { y: number; label: string }[];
}

const LANE = 18;
const SIDE = { left: 50, right: 10, top: 20, bottom: 20 };

export const charted = (pairs: readonly Pair[]) => pairs.filter((pair) => !isUnmatched(pair));

/** The height of a pair: its error, or infinity where there is none to be had. */
function heightOf(pair: Pair): number {
  const error = errorOf(pair);
  return Number.isNaN(error) ? Infinity : error;
}

function decades(pairs: readonly Pair[]): [low: number, high: number] {
  let low = Infinity, high = -Infinity;
  for (const pair of pairs)
    for (const value of [heightOf(pair), pair.floor ?? 0])
      if (value > 0 && Number.isFinite(value)) {
        low = Math.min(low, Math.log10(value));
        high = Math.max(high, Math.log10(value));
      }
  if (low > high) return [-8, 0];
  return [Math.floor(low), Math.max(Math.ceil(high), Math.floor(low) + 1)];
}

function bandsOf(pairs: readonly Pair[], left: number, step: number): Band[] {
  const bands: Band[] = [];
  for (let from = 0, to = 0; from < pairs.length; from = to) {
    const { layer } = pairs[from]!;
    while (to < pairs.length && pairs[to]!.layer === layer) to++;
    bands.push({ label: layer === null ? "" : String(layer), from: left + from * step, to: left + to * step });
  }
  return bands;
}

export function scaleOf(pairs: readonly Pair[], width: number, height: number): Scale {
  const left = SIDE.left, right = width - SIDE.right, top = SIDE.top, bottom = height - SIDE.bottom;
  const heights = pairs.map(heightOf);
  const hasZero = heights.includes(0), hasLost = heights.includes(Infinity);
  const [low, high] = decades(pairs);
  const highest = top + (hasLost ? LANE : 0), lowest = bottom - (hasZero ? LANE : 0);
  const step = (right - left) / Math.max(1, pairs.length);
  const y = (value: number) => {
    if (value === 0) return bottom - 5;
    if (value === Infinity) return top + 5;
    return lowest - ((Math.log10(value) - low) / (high - low)) * (lowest - highest);
  };
  const ticks = [];
  const every = Math.max(1, Math.ceil((high - low) / ((lowest - highest) / 22)));
  for (let e = low; e <= high; e += every) ticks.push({ y: y(10 ** e), label: e >= -3 && e <= 3 ? String(Number((10 ** e).toPrecision(1))) : `1e${e}` });
  if (hasZero) ticks.push({ y: y(0), label: "0" });
  if (hasLost) ticks.push({ y: y(Infinity), label: pairs.some(isLost) ? "NaN, inf" : "error" });
  const points = pairs.map((pair, at) => ({
    pair, x: left + (at + 0.5) * step, y: y(heights[at]!), floorY: pair.floor ? y(pair.floor) : null,
  }));
  return { left, right, top, bottom, step, points, bands: bandsOf(pairs, left, step), ticks };
}

/** The point in the column of the pointer; where columns are narrower than a pointer, the nearest of those around. */
export function pointAt(scale: Scale, x: number, y: number): Point | null {
  if (x < scale.left || x > scale.right || scale.points.length === 0) return null;
  const at = Math.min(scale.points.length - 1, Math.max(0, Math.floor((x - scale.left) / scale.step)));
  const reach = Math.floor(6 / scale.step);
  let best = scale.points[at]!, distance = Infinity;
  for (const point of scale.points.slice(Math.max(0, at - reach), at + reach + 1)) {
    const d = Math.hypot(point.x - x, point.y - y);
    if (d < distance) [best, distance] = [point, d];
  }
  return best;
}
