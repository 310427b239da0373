// A comparison: header, overview, the list of pairs, and the inspector of the one that is open. Where there is
// room the inspector stands beside the list; else it takes its place.
import { useEffect } from "preact/hooks";
import { sideName } from "../../format";
import type { Comparison, DiffResult } from "../../model";
import { useKeys } from "../../keys";
import { arranged, activate, closePair, cursor, moveByRow, moveRow, moveTo, moveToDiverged, openFirstDivergence, resetList, stepPair, toggleGroup } from "../../pairs/list";
import { isUnmatched } from "../../pairs/measure";
import { comparisonAddress } from "../../router";
import { close, comparison, diff, explored, open, trouble } from "../../state";
import { Explorer } from "../explorer/Explorer";
import { Inspector } from "../inspector";
import { ErrorChart } from "./ErrorChart";
import { FirstCard } from "./FirstCard";
import { ComparisonHeader, TopBar } from "./Header";
import { Notes } from "./Notes";
import { PairingDialog } from "./PairingDialog";
import { PairList } from "./PairList";
import { pairingOpen } from "./pairing";
import { SettingsPanel, settingsOpen } from "./SettingsPanel";
import { ChangedInputs, Standing } from "./Standing";
import { focusSearch, Toolbar } from "./Toolbar";

/** Right opens the group at the cursor, left folds it; from a pair, left goes to its heading. */
function fold(open: boolean): void {
  const { rows } = arranged.value;
  const at = cursor.value;
  const row = rows.find((candidate) => (candidate.kind === "group" ? candidate.key : candidate.pair.index) === at);
  if (row?.kind === "group" && row.open !== open) toggleGroup(row.key);
  else if (row?.kind === "pair" && !open && row.group !== null) cursor.value = row.group;
}

function useListKeys(): void {
  useKeys("List", [
    { keys: ["j"], does: "next diverged pair", run: () => moveToDiverged(1) },
    { keys: ["k"], does: "previous diverged pair", run: () => moveToDiverged(-1) },
    { keys: ["ArrowDown"], does: "next row", run: () => moveByRow(1) },
    { keys: ["ArrowUp"], does: "previous row", run: () => moveByRow(-1) },
    { keys: ["ArrowRight"], does: "open a group", run: () => fold(true) },
    { keys: ["ArrowLeft"], does: "fold a group", run: () => fold(false) },
    { keys: ["Enter"], does: "open the pair", run: activate },
    { keys: ["g"], does: "first divergence", run: openFirstDivergence },
    { keys: ["[", "]"], does: "previous, next pair", run: (key) => stepPair(key === "]" ? 1 : -1) },
    { keys: ["Alt+ArrowUp", "Alt+ArrowDown"], does: "move the row", run: (key) => moveRow(key === "Alt+ArrowDown" ? 1 : -1) },
    { keys: ["/"], does: "filter", run: focusSearch },
    { keys: ["s"], does: "settings", run: () => (settingsOpen.value = true) },
    { keys: ["Escape"], does: "close the pair", run: closePair },
  ]);
}

function Overview({ id, result, opened }: { id: string; result: DiffResult; opened: number | null }) {
  return (
    <div class="overview">
      <FirstCard id={id} result={result} />
      {result.pairs.some((pair) => !isUnmatched(pair)) && <ErrorChart result={result} opened={opened} />}
      <Notes result={result} />
    </div>
  );
}

function DiffBody({ now, result, pair }: { now: Comparison; result: DiffResult; pair: number | null }) {
  useListKeys();
  // A link to a pair shows it in the list too.
  useEffect(() => {
    const linked = pair === null ? undefined : result.pairs[pair];
    if (linked) moveTo(linked);
  }, [pair, result]);
  return (
    <div class={pair === null ? "work" : "work split"}>
      {/* What is looked at is the main thing: roles, since another element would lose its place in the list. */}
      <div class="pane list-pane" role={pair === null ? "main" : "region"} aria-label="Pairs">
        <ChangedInputs comparison={now} />
        <Overview id={now.id} result={result} opened={pair} />
        <Toolbar />
        <PairList opened={pair} />
      </div>
      {pair !== null && (
        <div class="pane inspector-pane" role="main" aria-label="Pair">
          <nav class="back"><a href={comparisonAddress(now.id)}>← All pairs</a></nav>
          <ChangedInputs comparison={now} />
          <Inspector key={`${now.generation} ${pair}`} comparison={now} index={pair} pair={result.pairs[pair] ?? null} tensor={null} />
        </div>
      )}
    </div>
  );
}

function Body({ now, pair }: { now: Comparison; pair: number | null }) {
  if (now.status !== "done") return <main class="pane"><Standing comparison={now} /></main>;
  if (explored.value) return <Explorer comparison={now} result={explored.value} index={pair} />;
  if (!diff.value) return null;
  return <DiffBody now={now} result={diff.value} pair={pair} />;
}

export function ComparisonView({ id, pair }: { id: string; pair: number | null }) {
  // What belongs to this comparison goes with it. Cleared at the end, not at the beginning: by then the views inside
  // have begun, and have shown a linked pair in the list.
  useEffect(() => {
    void open(id);
    return () => {
      close();
      resetList();
      settingsOpen.value = false;
      pairingOpen.value = null;
    };
  }, [id]);
  const now = comparison.value;
  useEffect(() => {
    document.title = now ? `${sideName(now.a)}${now.b ? ` · ${sideName(now.b)}` : ""} — tdbg` : "tdbg";
  }, [now]);
  if (trouble.value || !now)
    return (
      <div class="app">
        <TopBar />
        <main class="message-page" aria-busy={!trouble.value}>
          {trouble.value ? <><h1>This comparison cannot be shown</h1><p role="alert">{trouble.value}</p><p><a href="/">All comparisons</a></p></> : <p class="dim slow">Loading…</p>}
        </main>
      </div>
    );
  return (
    <div class="app">
      <ComparisonHeader comparison={now} />
      <Body now={now} pair={pair} />
      {settingsOpen.value && <SettingsPanel comparison={now} />}
      {pairingOpen.value && <PairingDialog preset={pairingOpen.value.chosen} />}
    </div>
  );
}
