// How one value is shown: its colour, its text, and whether the two sides differ much there.
import { number, short } from "../../format";
import type { Pair, TensorStats } from "../../model";

/** What the depth of colours and the borders are measured by; from the server's statistics of the whole pair. */
export interface Measure {
  /** The largest size of a finite value on either side. */
  largest: number;
  largestDifference: number;
  /** A difference is large past `share` of the value plus the typical size. */
  share: number;
  typical: number;
  /** The same in words, for the legend. */
  rule: string;
}

/** Where no rule gave a floor: a tenth of a per cent. */
const usualShare = 1e-3;

function typicalSize(stats: TensorStats | null): number {
  return stats && stats.finite > 0 ? number(stats.norm) / Math.sqrt(stats.finite) : 0;
}

function isInteger(dtype: string | undefined): boolean {
  return /^(u?int|bool)/.test(dtype ?? "");
}

export function measureOf(pair: Pair | null, a: TensorStats | null, b: TensorStats | null, dtype: string | undefined): Measure {
  const largest = Math.max(number(a?.absmax ?? 0), number(b?.absmax ?? 0));
  const largestDifference = number(pair?.metrics?.max_abs ?? 0);
  if (isInteger(dtype)) return { largest, largestDifference, share: 0, typical: 0, rule: "any difference" };
  const typical = typicalSize(a ?? b);
  const share = pair?.floor ?? usualShare;
  const text = pair?.floor === undefined ? "0.1 %" : `the noise floor, ${short(share)},`;
  return { largest, largestDifference, share, typical, rule: `more than ${text} of |a| + rms` };
}

export type Difference = "none" | "small" | "large";

/** A NaN or infinity that only one side has is a large difference; the server then sends no finite one. */
export function differenceOf(measure: Measure, a: number | undefined, b: number | undefined, d: number | undefined): Difference {
  if (a === undefined || b === undefined || d === undefined) return "none";
  if (!Number.isFinite(a) || !Number.isFinite(b)) return Object.is(a, b) ? "small" : "large";
  return Math.abs(d) > measure.share * (Math.abs(a) + measure.typical) ? "large" : "small";
}

/** 0 to 1; the root keeps small values apart, which most are. */
export const depthOf = (largest: number, value: number) =>
  largest > 0 && Number.isFinite(value) ? Math.sqrt(Math.min(Math.abs(value) / largest, 1)) : 0;

export function cellClass(value: number, difference: Difference): string {
  const kind = Number.isNaN(value) ? "is-nan" : !Number.isFinite(value) ? "is-inf" : value < 0 ? "cold" : value > 0 ? "hot" : "zero";
  return `val ${kind} ${difference}`;
}

export function cellText(value: number, digits = 4): string {
  if (Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return value > 0 ? "+Inf" : "-Inf";
  return short(value, digits);
}
