// What one input holds: its tensors with their statistics, the one that is open beside them, and any two of them
// compared with each other.
import { type RefObject } from "preact";
import { useRef, useState } from "preact/hooks";
import * as api from "../../api";
import { bytes, count, plural } from "../../format";
import { useKeys } from "../../keys";
import type { Comparison, ExploreResult, Source, TensorStats } from "../../model";
import { comparisonAddress, go, pairAddress, query, setQuery } from "../../router";
import { message } from "../../state";
import { notify } from "../../ui/Notices";
import { ChangedInputs } from "../comparison/Standing";
import { Inspector } from "../inspector";
import { TensorList } from "./TensorList";
import { type Column, entriesOf, parseSorting } from "./tensors";

export interface ExplorerProps {
  comparison: Comparison;
  result: ExploreResult;
  /** The tensor that is open; null none. */
  index: number | null;
}

/** One tensor of what is explored, as a comparison names it. */
function sourceOf(comparison: Comparison, tensor: TensorStats): Source {
  const { path, upload } = comparison.a;
  return upload ? { upload, tensor: tensor.name } : { path: `${path}:${tensor.name}` };
}

/** "torch, 12.3 MB": in which formats they are stored, and how large they are. */
const about = (comparison: Comparison, result: ExploreResult) =>
  [...new Set(result.tensors.map((tensor) => tensor.format)), bytes(comparison.summary?.bytes ?? 0)].join(", ");

/** Keeps the two chosen last: choosing a third lets the first go. */
const choose = (chosen: readonly number[], index: number, isChosen: boolean) =>
  (isChosen ? [...chosen, index].slice(-2) : chosen.filter((other) => other !== index));

function Skipped({ result }: { result: ExploreResult }) {
  if (result.skipped.length === 0) return null;
  return (
    <details class="skipped-members">
      <summary>{plural(result.skipped.length, "member")} could not be read</summary>
      <ul>{result.skipped.map((skip, i) => <li key={i}><span class="mono">{skip.name || skip.path}</span> <span class="dim">{skip.reason}</span></li>)}</ul>
    </details>
  );
}

function CompareButton({ comparison, result, chosen }: { comparison: Comparison; result: ExploreResult; chosen: readonly number[] }) {
  const [isBusy, setBusy] = useState(false);
  const [first, second] = [...chosen].sort((p, q) => p - q).map((index) => result.tensors[index]);
  const compare = async () => {
    if (!first || !second) return;
    setBusy(true);
    try {
      const made = await api.start(sourceOf(comparison, first), sourceOf(comparison, second));
      go(comparisonAddress(made.id));
    } catch (error) {
      notify(message(error), true);
      setBusy(false);
    }
  };
  return (
    <button type="button" class="primary" disabled={!first || !second || isBusy} onClick={() => void compare()}
      title={first && second ? `${first.name} against ${second.name}` : "Choose two tensors in the list"}>
      Compare {chosen.length === 2 ? "the two" : `(${chosen.length} of 2 chosen)`}
    </button>
  );
}

function useTensorKeys(id: string, order: readonly number[], index: number | null, filter: RefObject<HTMLInputElement | null>): void {
  const step = (by: number) => {
    const next = order[index === null ? 0 : order.indexOf(index) + by];
    // From tensor to tensor is one visit: "back" leads to the list.
    if (next !== undefined) go(pairAddress(id, next), index !== null);
  };
  useKeys("Tensors", [
    { keys: ["]", "j"], does: "next tensor", run: () => step(1) },
    { keys: ["[", "k"], does: "previous tensor", run: () => step(-1) },
    { keys: ["/"], does: "filter", run: () => { filter.current?.focus(); filter.current?.select(); } },
    { keys: ["Escape"], does: "close the tensor", run: () => index !== null && go(comparisonAddress(id)) },
  ]);
}

export function Explorer({ comparison, result, index }: ExplorerProps) {
  const filter = useRef<HTMLInputElement>(null);
  const [chosen, setChosen] = useState<readonly number[]>([]);
  const text = query.value.get("q") ?? "";
  const sorting = parseSorting(query.value.get("sort"));
  const entries = entriesOf(result, text, sorting);
  useTensorKeys(comparison.id, entries.map((entry) => entry.index), index, filter);
  const sort = (column: Column) => {
    const next = sorting?.column !== column ? column : sorting.isDown ? null : `-${column}`;
    setQuery({ sort: next });
  };
  const opened = index === null ? null : result.tensors[index] ?? null;
  return (
    <div class={index === null ? "work" : "work split"}>
      <div class="pane list-pane explorer" role={index === null ? "main" : "region"} aria-label="Tensors">
        <ChangedInputs comparison={comparison} />
        <p class="explorer-head"><b>{plural(result.tensors.length, "tensor")}</b> <span class="dim">{about(comparison, result)}</span></p>
        <Skipped result={result} />
        <div class="explorer-bar">
          <input ref={filter} type="search" placeholder="Filter by name, type, shape" aria-label="Filter tensors" value={text}
            onInput={(event) => setQuery({ q: event.currentTarget.value })} />
          <CompareButton comparison={comparison} result={result} chosen={chosen} />
          <span class="dim" role="status">{entries.length < result.tensors.length ? `${count(entries.length)} shown` : ""}</span>
        </div>
        {entries.length > 0 ? (
          <TensorList id={comparison.id} entries={entries} opened={index} chosen={chosen} sorting={sorting} onSort={sort}
            onChoose={(which, isChosen) => setChosen((was) => choose(was, which, isChosen))} />
        ) : (
          <p class="empty-note">{result.tensors.length === 0 ? "This input holds no tensors." : "No tensor fits the filter."}</p>
        )}
      </div>
      {index !== null && (
        <div class="pane inspector-pane" role="main" aria-label="Tensor">
          <nav class="back"><a href={comparisonAddress(comparison.id)}>← All tensors</a></nav>
          <ChangedInputs comparison={comparison} />
          <Inspector key={`${comparison.generation} ${index}`} comparison={comparison} index={index} pair={null} tensor={opened} />
        </div>
      )}
    </div>
  );
}
