// How much of each side has a partner: two thin bars in the header, and the words for it.
import { shareText } from "../../format";
import type { Summary } from "../../model";

/** Results that were stored before the server said so have none. */
export const isEnough = (summary: Summary) => summary.enough ?? summary.identical + summary.within + summary.diverged + summary.errors > 0;

export const coverageWords = ({ coverage }: Summary) =>
  coverage ? `${shareText(coverage.a)} of A and ${shareText(coverage.b)} of B have a partner` : "";

function Bar({ side, share, enough }: { side: string; share: number; enough: boolean }) {
  return (
    <span class={enough ? "coverage-side" : "coverage-side short"}>
      <span class="side-letter">{side}</span>
      <span class="track" aria-hidden="true"><span class="fill" style={{ width: `${share * 100}%` }} /></span>
      <b>{shareText(share)}</b>
    </span>
  );
}

export function Coverage({ summary }: { summary: Summary }) {
  const { coverage } = summary;
  if (!coverage) return null;
  const enough = isEnough(summary);
  return (
    <div class="coverage" role="img" aria-label={`${coverageWords(summary)}${enough ? "" : ": not enough to say"}`} title={`${coverageWords(summary)}${enough ? "" : ":\nnot enough to say whether they agree"}`}>
      <span class="dim">paired</span>
      <Bar side="A" share={coverage.a} enough={enough} />
      <Bar side="B" share={coverage.b} enough={enough} />
    </div>
  );
}
