// The list of pairs: a treegrid of which only what is in sight exists. The grid has the focus and points at the
// row the keyboard is on; the keys themselves are in ComparisonView.
import { computed } from "@preact/signals";
import { useRef } from "preact/hooks";
import { SORTS, type Row, type Sort, type Spot } from "../../pairs/arrange";
import { arranged, choices, cursor, indicesOf, openPair, reorder, rowKey, setSort, toggleGroup } from "../../pairs/list";
import { isRenamed } from "../../pairs/layers";
import { isUnmatched } from "../../pairs/measure";
import { comparison, diff } from "../../state";
import { VirtualRows } from "../../ui/VirtualRows";
import { GroupRowView, PairRowView } from "./PairRows";
import { pairByHand, startPairing, templatesOf } from "./pairing";
import { useRowDrag, type Drop } from "./rowDrag";

const ROW = 28;
const COVERED = 76; // toolbar and column heads stick to the top of the pane

const COLUMNS: { name: string; label: string; sort?: Sort; number?: boolean }[] = [
  { name: "verdict", label: "Verdict" },
  { name: "title", label: "Name", sort: "name" },
  { name: "shape", label: "Shape", sort: "size" },
  { name: "types", label: "Type" },
  { name: "error", label: "Relative error", sort: "worst", number: true },
  { name: "floor", label: "× floor", number: true },
  { name: "max", label: "Max diff", number: true },
  { name: "cosine", label: "Cosine", sort: "best", number: true },
  { name: "why", label: "Why" },
];

function Heads() {
  const { sort } = choices.value;
  return (
    <div class="heads" role="row" aria-rowindex={1}>
      {COLUMNS.map((column) => (
        <span key={column.name} role="columnheader" class={`cell ${column.name}${column.number ? " number-head" : ""}`}
          aria-sort={column.sort && column.sort === sort ? (sort === "name" || sort === "best" ? "ascending" : "descending") : undefined}>
          {column.sort
            ? <button type="button" class="plain" title={`Sort by ${SORTS[column.sort]}`}
                onClick={() => setSort(sort === column.sort ? "order" : column.sort!)}>{column.label}</button>
            : column.label}
        </span>
      ))}
    </div>
  );
}

const inEveryLayer = (x: Row | undefined, y: Row | undefined) => x?.kind === "pair" && y?.kind === "pair" && templatesOf(x.pair, y.pair) !== null;

/** What a drop means: a pair made by hand, or another order. */
function dropped(rows: readonly Row[], from: number, drop: Drop, alone: boolean): void {
  const row = rows[from]!, target = rows[drop.at];
  if (drop.onto && row.kind === "pair" && target?.kind === "pair") {
    void pairByHand(row.pair, target.pair, !alone);
    return;
  }
  void reorder(indicesOf(row), spotOf(rows, row, drop.at));
}

/** Before the row that stands there, or after the last of the group when another one begins there. */
function spotOf(rows: readonly Row[], row: Row, at: number): Spot {
  const next = rows[at], before = rows[at - 1];
  if (row.kind === "group") return next ? { before: indicesOf(next)[0]! } : null;
  if (next?.kind === "pair" && next.group === row.group) return { before: next.pair.index };
  return before?.kind === "pair" ? { after: before.pair.index } : null;
}

const renamed = computed(() => diff.value?.pairs.some(isRenamed) ?? false);

export function PairList({ opened }: { opened: number | null }) {
  const body = useRef<HTMLDivElement>(null);
  const { rows } = arranged.value;
  const { drag, begin } = useRowDrag({ body, rows, height: ROW, onDrop: (from, drop, alone) => dropped(rows, from, drop, alone) });
  const at = cursor.value === null ? -1 : rows.findIndex((row) => rowKey(row) === cursor.value);
  const first = diff.value?.first_divergence?.index ?? null;
  const id = comparison.value?.id ?? "";

  const render = (index: number) => {
    const row = rows[index]!;
    const shared = { index, top: index * ROW, current: index === at, onGrip: (event: PointerEvent) => begin(index, event) };
    if (row.kind === "group") return <GroupRowView key={`g${row.key}`} row={row} {...shared} templates={choices.value.group === "template"}
      onToggle={() => { cursor.value = row.key; toggleGroup(row.key); }} />;
    return <PairRowView key={row.pair.index} row={row} id={id} {...shared} opened={row.pair.index === opened} first={row.pair.index === first}
      onOpen={() => openPair(row.pair.index)} onPair={() => isUnmatched(row.pair) && startPairing(row.pair)} />;
  };
  return (
    <div class={`pair-list${drag ? " dragging" : ""}${arranged.value.groups ? " grouped" : ""}${renamed.value ? " renamed" : ""}`} role="treegrid" tabIndex={0} aria-label="Pairs"
      aria-rowcount={rows.length + 1} aria-activedescendant={at >= 0 ? `row-${at}` : undefined}>
      <Heads />
      <VirtualRows count={rows.length} height={ROW} reveal={at >= 0 ? at : null} covered={COVERED} body={body} render={render} />
      {drag?.drop && (
        <div class={drag.drop.onto ? "drop onto" : "drop"} style={{ transform: `translateY(${drag.drop.at * ROW}px)` }} aria-hidden="true">
          {drag.drop.onto && inEveryLayer(rows[drag.from], rows[drag.drop.at]) && <span class="drop-words">in every layer · Shift: only here</span>}
        </div>
      )}
      {rows.length === 0 && <p class="empty">No pair passes the filters.</p>}
    </div>
  );
}

