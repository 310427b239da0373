// A series on a small chart: where its line and the band between its extremes run, and what the axes say.
import { number, short } from "../../format";
import type { TrailPoint } from "../../model";

export interface Sample {
  step: number;
  low: number;
  high: number;
  last: number;
}

export interface Curve {
  samples: Sample[];
  line: string;
  band: string;
  /** From where to where values were NaN or infinite. */
  gaps: [from: number, to: number][];
  ticks: { y: number; label: string }[];
  x: (step: number) => number;
  y: (value: number) => number;
}

export const SIDE = { left: 64, right: 8, top: 8, bottom: 18 };

export function sampleOf(point: TrailPoint): Sample {
  if (point.length === 2) {
    const value = number(point[1]);
    return { step: point[0], low: value, high: value, last: value };
  }
  return { step: point[0], low: number(point[1]), high: number(point[2]), last: number(point[3]) };
}

function extent(samples: readonly Sample[], log: boolean): [number, number] {
  let low = Infinity, high = -Infinity;
  for (const sample of samples)
    for (const value of [sample.low, sample.high])
      if (Number.isFinite(value) && (!log || value > 0)) {
        low = Math.min(low, value);
        high = Math.max(high, value);
      }
  if (low > high) return log ? [0.1, 1] : [0, 1];
  if (low < high) return [low, high];
  const half = Math.abs(low) / 20 || 0.5;
  return log ? [low / 2, low * 2] : [low - half, low + half];
}

/** A few round numbers. */
export function roundTicks(low: number, high: number): number[] {
  const rough = (high - low) / 4, unit = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((n) => n * unit).find((size) => size >= rough)!;
  const out: number[] = [];
  for (let n = Math.ceil(low / step - 1e-9); n * step <= high + step * 1e-9 && out.length < 8; n++) out.push(n * step);
  return out;
}

function decades(low: number, high: number): number[] {
  const first = Math.ceil(Math.log10(low)), last = Math.floor(Math.log10(high));
  const stride = Math.max(1, Math.ceil((last - first + 1) / 4));
  const out: number[] = [];
  for (let n = first; n <= last; n += stride) out.push(10 ** n);
  return out.length ? out : [low, high];
}

/** A number in so many digits, for people. */
export type Label = (value: number, digits?: number) => string;

/** A round number without what rounding left of it. */
const plain: Label = (value, digits = 3) => {
  const size = Math.abs(value);
  return size !== 0 && (size < 1e-3 || size >= 1e5) ? Number(value.toPrecision(digits)).toExponential().replace("e+", "e") : short(value, digits);
};

/** What stands beside the ticks, in as few digits as tell them apart: 252.5 MB and 253.0 MB. There is room for five. */
export function labelsOf(values: readonly number[], label: Label): string[] {
  for (let digits = 3; ; digits++) {
    const labels = values.map((value) => label(value, digits));
    if (new Set(labels).size === labels.length || digits === 5) return labels;
  }
}

function gapsOf(samples: readonly Sample[]): [number, number][] {
  const gaps: [number, number][] = [];
  let open = false;
  for (const sample of samples) {
    const lost = !Number.isFinite(sample.last);
    if (lost && open) gaps.at(-1)![1] = sample.step;
    else if (lost) gaps.push([sample.step, sample.step]);
    open = lost;
  }
  return gaps;
}

export function curveOf(points: readonly TrailPoint[], width: number, height: number, log: boolean, label: Label = plain): Curve {
  const samples = points.map(sampleOf);
  const [low, high] = extent(samples, log);
  const first = samples[0]?.step ?? 0, last = samples.at(-1)?.step ?? 1;
  const right = width - SIDE.right, bottom = height - SIDE.bottom;
  const x = (step: number) => (last === first ? (SIDE.left + right) / 2 : SIDE.left + ((step - first) / (last - first)) * (right - SIDE.left));
  const place = log ? Math.log10 : (value: number) => value;
  const y = (value: number) => bottom - ((place(value) - place(low)) / (place(high) - place(low))) * (bottom - SIDE.top);
  const shown = (value: number) => Number.isFinite(value) && (!log || value > 0);
  const at = (step: number, value: number) => `${x(step).toFixed(1)} ${y(value).toFixed(1)}`;

  let line = "", pen = "M";
  for (const sample of samples) {
    if (shown(sample.last)) line += pen + at(sample.step, sample.last);
    pen = shown(sample.last) ? "L" : "M";
  }
  const wide = samples.filter((sample) => shown(sample.low) && shown(sample.high));
  const upper = wide.map((sample) => at(sample.step, sample.high)), lower = wide.map((sample) => at(sample.step, sample.low)).reverse();
  const marks = log ? decades(low, high) : roundTicks(low, high), labels = labelsOf(marks, label);
  return {
    samples, line, x, y,
    band: wide.some((sample) => sample.low !== sample.high) ? `M${[...upper, ...lower].join("L")}Z` : "",
    gaps: gapsOf(samples).map(([from, to]) => [x(from), x(to)]),
    ticks: marks.map((value, i) => ({ y: y(value), label: labels[i]! })),
  };
}
