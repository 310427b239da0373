// What was compared before, newest first.
import { useEffect, useRef, useState } from "preact/hooks";
import * as api from "../../api";
import { ago, count, kindWords, plural, reasonOf, sideName, sideNames } from "../../format";
import type { Comparison, Summary, Verdict } from "../../model";
import { isUnderWay, message } from "../../state";
import { isEnough } from "../comparison/coverage";
import { Mark } from "../../ui/Mark";
import { Name } from "../../ui/Name";
import { notify } from "../../ui/Notices";
import { Progress } from "../../ui/Progress";
import { TrashIcon } from "../../ui/icons";

const REFRESH_MS = 1000;

function Counts({ comparison }: { comparison: Comparison }) {
  const summary = comparison.summary;
  if (!summary) return null;
  if (comparison.kind === "explore") return <span class="dim">{plural(summary.tensors ?? 0, "tensor")}</span>;
  const counts: [Verdict, number, string][] = [
    ["diverged", summary.diverged, "diverged"], ["error", summary.errors, "errors"], ["within", summary.within, "within"],
    ["identical", summary.identical, "identical"], ["only_a", summary.only_a + summary.only_b, "unmatched"],
  ];
  return (
    <span class="tally">
      {counts.filter(([, n]) => n > 0).map(([verdict, n, word]) => (
        <span key={verdict} class={verdict} title={`${n} ${word}`}><Mark verdict={verdict} />{count(n)}<span class="sr-only"> {word}</span></span>
      ))}
    </span>
  );
}

/** What did not part: only what was compared can agree. */
function agreement(summary: Summary | null): string {
  if (summary && summary.identical + summary.within > 0 && !isEnough(summary)) return "not enough paired";
  if (!summary || summary.identical + summary.within > 0) return summary?.errors ? "the rest agrees" : "agree";
  return summary.errors > 0 ? "could not be compared" : "nothing to compare";
}

function Outcome({ comparison }: { comparison: Comparison }) {
  switch (comparison.status) {
    case "queued":
      return <span class="dim">queued</span>;
    case "running":
      return <Progress label="Progress" share={comparison.progress.total ? comparison.progress.done / comparison.progress.total : null} />;
    case "failed":
      return <span class="failed" title={comparison.error ?? ""}><Mark verdict="error" />{reasonOf(comparison.error ?? "", [comparison.a.path, comparison.b?.path ?? ""])}</span>;
    case "cancelled":
      return <span class="dim">cancelled</span>;
    case "done":
      return comparison.first ? <span class="parted">parts at <b><Name text={comparison.first.name} /></b>: {kindWords(comparison.first.kind)}</span>
        : <span class="dim">{comparison.kind === "diff" ? agreement(comparison.summary) : "explored"}</span>;
  }
}

function Row({ comparison, onForget }: { comparison: Comparison; onForget: () => void }) {
  const { a, b } = comparison;
  const [nameA, nameB] = b ? sideNames(a, b) : [sideName(a), ""];
  return (
    <li class="recent-row">
      <a href={`/c/${comparison.id}`} class="recent-names">
        <Name text={nameA} title={a.path} />{b && <><span class="dim">and</span><Name text={nameB} title={b.path} /></>}
      </a>
      <span class="recent-outcome"><Outcome comparison={comparison} /></span>
      <span class="recent-counts"><Counts comparison={comparison} /></span>
      <time class="dim" dateTime={new Date(comparison.created * 1000).toISOString()}>{ago(comparison.created)}</time>
      <button type="button" class="plain" title="Forget this comparison" aria-label={`Forget ${nameA}${b ? ` and ${nameB}` : ""}`} onClick={onForget}><TrashIcon /></button>
    </li>
  );
}

export function Recent() {
  const [list, setList] = useState<Comparison[] | null>(null);
  const [error, setError] = useState<string | null>(null);
  const load = () => api.comparisons().then((found) => { setList(found); setError(null); }, (reason: unknown) => setError(message(reason)));
  useEffect(() => void load(), []);
  const moving = list?.some(isUnderWay) ?? false;
  useEffect(() => {
    if (!moving) return;
    const timer = window.setInterval(() => void load(), REFRESH_MS);
    return () => window.clearInterval(timer);
  }, [moving]);
  const rows = useRef<HTMLUListElement>(null);
  const forgotten = useRef<number | null>(null);
  // The button that was pressed goes with its row: the one that moved up has the focus then, or the last.
  useEffect(() => {
    if (forgotten.current === null || document.activeElement !== document.body) return;
    const buttons = rows.current?.querySelectorAll("button") ?? [];
    buttons[Math.min(forgotten.current, buttons.length - 1)]?.focus();
    forgotten.current = null;
  }, [list]);
  const forget = async (id: string) => {
    forgotten.current = list?.findIndex((comparison) => comparison.id === id) ?? null;
    try {
      await api.forget(id);
    } catch (reason) {
      notify(message(reason), true);
    }
    await load();
  };
  return (
    <section class="recent" aria-label="Recent comparisons">
      <h2>Recent</h2>
      {error && <p class="field-error" role="alert">{error}</p>}
      {list?.length === 0 && <p class="dim empty">Nothing yet. What you compare stays here, also after a restart of the server.</p>}
      <ul class="panel" ref={rows} hidden={!list?.length}>
        {list?.map((comparison) => <Row key={comparison.id} comparison={comparison} onForget={() => void forget(comparison.id)} />)}
      </ul>
    </section>
  );
}
