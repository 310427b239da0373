// What lists, charts and cards say about one pair; nothing here computes what the server has not said.
import { kindWords, number } from "../format";
import type { Diagnosis, Metrics, Pair, Verdict } from "../model";

/** Words for people; one for each verdict. */
export const VERDICT_WORDS: Record<Verdict, string> = {
  identical: "identical", within: "within", diverged: "diverged", error: "error", only_a: "only in A", only_b: "only in B",
};

/** What was measured; null where no two values at one place are both finite: zero differences of nothing would say they agree. */
export function measured(metrics: Metrics | null): Metrics | null {
  return metrics?.argmax ? metrics : null;
}

/**
 * A NaN or an infinity that the other side does not have at that place is no small error, whatever the rest adds up
 * to. Equal counts prove nothing: the places may be others, or the signs. But such an element is the worst of its
 * pair before any other; and where no worst are kept, a pair that diverged without a difference has nothing else.
 */
export function isLost(pair: Pair): boolean {
  const m = pair.metrics;
  if (m === null) return false;
  if (m.nan_a !== m.nan_b || m.inf_a !== m.inf_b || Number.isNaN(number(m.rel_l2))) return true;
  if (m.nan_a + m.inf_a === 0 || pair.verdict !== "diverged") return false;
  const worst = pair.worst?.[0];
  return worst ? !Number.isFinite(number(worst.a)) || !Number.isFinite(number(worst.b)) : number(m.max_abs) === 0;
}

/** What was lost, in a word: it says more than any number. */
export function lostWord(pair: Pair): string {
  const m = pair.metrics;
  const isNaNAmongWorst = pair.worst?.some((element) => Number.isNaN(number(element.a)) || Number.isNaN(number(element.b)));
  return m && (m.nan_a !== m.nan_b || isNaNAmongWorst || Number.isNaN(number(m.rel_l2))) ? "NaN" : "inf";
}

/** The relative error; infinite where values are lost on one side, NaN where nothing was compared. */
export function errorOf(pair: Pair): number {
  if (!pair.metrics) return NaN;
  return isLost(pair) ? Infinity : number(pair.metrics.rel_l2);
}

export const isUnmatched = (pair: Pair) => pair.verdict === "only_a" || pair.verdict === "only_b";

export const shapeOf = (pair: Pair): readonly number[] => pair.layout?.shape ?? (pair.a ?? pair.b)?.shape ?? [];

export const sizeOf = (pair: Pair) => shapeOf(pair).reduce((product, n) => product * n, 1);

export function typesOf(pair: Pair): string {
  const a = pair.a?.dtype, b = pair.b?.dtype;
  if (a === undefined || b === undefined || a === b) return a ?? b ?? "";
  return `${a} → ${b}`;
}

/** The findings worth reading. "unknown" closes every diagnosis; behind one that is likely it would deny it. */
export function findingsOf(pair: Pair): Diagnosis[] {
  const [likeliest, ...others] = pair.diagnosis ?? [];
  if (!likeliest) return [];
  return [likeliest, ...others.filter((finding) => finding.kind !== "unknown" || likeliest.confidence < 0.5)];
}

/** The shortest answer to "why": a diagnosis, or where the error comes from. */
export function whyOf(pair: Pair): string {
  const likely = pair.diagnosis?.[0];
  if (likely) return kindWords(likely.kind);
  if (pair.origin === "inherited") return "inherited";
  if (pair.origin === "born") return "born here";
  return "";
}

/** "27.6 x the noise floor", where there is a floor. */
export function timesFloor(pair: Pair): number | null {
  const error = errorOf(pair);
  return pair.floor && Number.isFinite(error) ? error / pair.floor : null;
}
