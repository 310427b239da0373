// The list of tensors: a table of which only the rows in sight exist, sorted by its headings.
import type { RefObject } from "preact";
import { useRef } from "preact/hooks";
import { count, shape, statistic } from "../../format";
import { pairAddress } from "../../router";
import { Name } from "../../ui/Name";
import { VirtualRows } from "../../ui/VirtualRows";
import { type Column, columnNames, columns, type Entry, type Sorting } from "./tensors";

const rowHeight = 28;
/** What sticks to the top of the pane: the headings. */
const covered = 32;

interface Props {
  id: string;
  entries: readonly Entry[];
  opened: number | null;
  chosen: readonly number[];
  onChoose: (index: number, isChosen: boolean) => void;
  sorting: Sorting | null;
  onSort: (column: Column) => void;
}

const isNumber = (column: Column) => !["name", "dtype", "shape"].includes(column);

function Heads({ sorting, onSort }: Pick<Props, "sorting" | "onSort">) {
  return (
    <div class="tensor-heads" role="row">
      <span role="columnheader"><span class="sr-only">chosen</span></span>
      {columns.map((column) => (
        <span key={column} role="columnheader" class={`of-${column}`}
          aria-sort={sorting?.column === column ? (sorting.isDown ? "descending" : "ascending") : undefined}>
          <button type="button" class={isNumber(column) ? "plain to-right" : "plain"} onClick={() => onSort(column)}>{columnNames[column]}</button>
        </span>
      ))}
    </div>
  );
}

function Row({ id, entry, top, opened, chosen, onChoose }: { entry: Entry; top: number } & Pick<Props, "id" | "opened" | "chosen" | "onChoose">) {
  const { tensor, index } = entry;
  const flaws = tensor.nan + tensor.inf;
  return (
    <div role="row" class={index === opened ? "tensor-row opened" : "tensor-row"} style={{ top: `${top}px` }} data-tensor={index}>
      <span role="cell">
        <input type="checkbox" aria-label={`choose ${tensor.name}`} checked={chosen.includes(index)}
          onChange={(event) => onChoose(index, event.currentTarget.checked)} />
      </span>
      <span role="cell" class="of-name"><a class="mono" href={pairAddress(id, index)} aria-current={index === opened ? "true" : undefined}><Name text={tensor.name} /></a></span>
      <span role="cell" class="of-dtype mono dim">{tensor.dtype}</span>
      <span role="cell" class="of-shape mono">{shape(tensor.shape)}</span>
      <span role="cell" class="of-count number">{count(tensor.count)}</span>
      {(["mean", "std", "min", "max"] as const).map((key) => (
        <span key={key} role="cell" class={`of-${key} number`}>{statistic(tensor[key])}</span>
      ))}
      <span role="cell" class={flaws > 0 ? "of-nan number alarm" : "of-nan number dim"}>
        {flaws > 0 ? `▲ ${count(tensor.nan)}, ${count(tensor.inf)}` : "0"}
      </span>
    </div>
  );
}

export function TensorList({ id, entries, opened, chosen, onChoose, sorting, onSort }: Props) {
  const body: RefObject<HTMLDivElement | null> = useRef(null);
  const revealed = entries.findIndex((entry) => entry.index === opened);
  return (
    <div class="tensor-list" role="table" aria-label="Tensors" aria-rowcount={entries.length + 1}>
      <Heads sorting={sorting} onSort={onSort} />
      <VirtualRows count={entries.length} height={rowHeight} reveal={revealed < 0 ? null : revealed} covered={covered} body={body}
        render={(n) => {
          const entry = entries[n];
          return entry && <Row key={entry.index} id={id} entry={entry} top={n * rowHeight} opened={opened} chosen={chosen} onChoose={onChoose} />;
        }} />
    </div>
  );
}
