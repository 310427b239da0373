// The shape of a verdict: one for each, so that colour never says it alone. The same as in the report.
import type { Verdict } from "../model";

export const SHAPES: Record<Verdict, string> = {
  diverged: "M5 0L10 5L5 10L0 5Z",
  error: "M5 .5L10 9.5H0Z",
  within: "M5 1.5a3.5 3.5 0 1 0 .01 0Z",
  identical: "M5 1.75a3.25 3.25 0 1 0 .01 0Z",
  only_a: "M3 1.5V8.5H6.5",
  only_b: "M7 1.5V8.5H3.5",
};

export function Mark({ verdict }: { verdict: Verdict }) {
  return (
    <svg class={`mark ${verdict}`} viewBox="0 0 10 10" aria-hidden="true">
      <path d={SHAPES[verdict]} />
    </svg>
  );
}
