// A comparison that has no result to show: queued, under way, stopped or failed; and inputs that are no longer
// what was compared.
import { percent, sideName, sideNames } from "../../format";
import type { Comparison } from "../../model";
import { cancel, compareAgain, message } from "../../state";
import { Progress } from "../../ui/Progress";
import { notify } from "../../ui/Notices";
import { settingsOpen } from "./SettingsPanel";

const report = (error: unknown) => notify(message(error), true);
const again = (comparison: Comparison) => () => void compareAgain(comparison.settings).catch(report);

const pastOf = (comparison: Comparison) => (comparison.kind === "diff" ? "compared" : "read");

export function CompareAgain({ comparison, primary = false }: { comparison: Comparison; primary?: boolean }) {
  return <button type="button" class={primary ? "primary" : ""} onClick={again(comparison)}>{comparison.kind === "diff" ? "Compare again" : "Read again"}</button>;
}

function UnderWay({ comparison }: { comparison: Comparison }) {
  const { done, total } = comparison.progress;
  const queued = comparison.status === "queued";
  const text = queued ? "Waiting for its turn" : total > 0 ? `${percent(done / total)} done` : "Opening the inputs";
  return (
    <div class="standing">
      <h2>{queued ? "Queued" : comparison.kind === "diff" ? "Comparing" : "Reading"}</h2>
      <Progress label="Progress" share={!queued && total > 0 ? done / total : null} />
      <p class="dim" role="status">{text}</p>
      <p><button type="button" onClick={() => void cancel().catch(report)}>Cancel</button></p>
    </div>
  );
}

export function Standing({ comparison }: { comparison: Comparison }) {
  if (comparison.status === "queued" || comparison.status === "running") return <UnderWay comparison={comparison} />;
  const failed = comparison.status === "failed";
  return (
    <div class="standing" role="alert">
      <h2>{failed ? `This could not be ${pastOf(comparison)}` : "Cancelled"}</h2>
      {comparison.error && <p class="reason">{comparison.error}</p>}
      <p class="buttons">
        <CompareAgain comparison={comparison} primary />
        {comparison.kind === "diff" && <button type="button" onClick={() => (settingsOpen.value = true)}>Settings…</button>}
        <a class="button" href="/">Other inputs</a>
      </p>
    </div>
  );
}

/** Whether the page knows that an input is no longer what was compared; a banner says so then. */
export const isOutdated = (comparison: Comparison): boolean =>
  [comparison.a, comparison.b].some((side) => side?.changed || side?.missing);

/** What was compared is not what lies on the disk now. */
export function ChangedInputs({ comparison }: { comparison: Comparison }) {
  const sides = [comparison.a, comparison.b].filter((side) => side !== null);
  const [nameA, nameB] = comparison.b ? sideNames(comparison.a, comparison.b) : [sideName(comparison.a), ""];
  const nameOf = (side: Comparison["a"]) => (side === comparison.a ? nameA : nameB);
  const missing = sides.filter((side) => side.missing), changed = sides.filter((side) => side.changed && !side.missing);
  if (!isOutdated(comparison)) return null;
  const say = (list: Comparison["a"][], what: string) => (list.length ? `${list.map(nameOf).join(" and ")} ${list.length > 1 ? "have" : "has"} ${what}` : null);
  return (
    <div class="banner" role="status">
      <span>{[say(missing, "gone"), say(changed, "changed")].filter(Boolean).join("; ")} since this was {pastOf(comparison)}.</span>
      {missing.length === 0 && <CompareAgain comparison={comparison} />}
    </div>
  );
}
