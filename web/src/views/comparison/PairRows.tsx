// One row of the list: a heading with what its pairs come to, or a pair.
import { count, exact, placeOf, shape, shareText, short, similarity } from "../../format";
import type { Pair, Verdict } from "../../model";
import type { GroupRow, PairRow } from "../../pairs/arrange";
import { aliasesOf, bare, doubtOf, foundBy, isRenamed, templateOf } from "../../pairs/layers";
import { errorOf, isLost, isUnmatched, lostWord, measured, shapeOf, timesFloor, typesOf, VERDICT_WORDS, whyOf } from "../../pairs/measure";
import { pairAddress } from "../../router";
import { GripIcon, LinkIcon } from "../../ui/icons";
import { Mark } from "../../ui/Mark";
import { Name } from "../../ui/Name";

interface RowProps {
  index: number;
  top: number;
  current: boolean;
  onGrip: (event: PointerEvent) => void;
}

const VERDICT_ORDER: Verdict[] = ["diverged", "error", "within", "identical", "only_a", "only_b"];

function tally(pairs: readonly Pair[]): [Verdict, number][] {
  return VERDICT_ORDER.map((verdict): [Verdict, number] => [verdict, pairs.filter((pair) => pair.verdict === verdict).length])
    .filter(([, n]) => n > 0);
}

function Grip({ onGrip }: { onGrip: (event: PointerEvent) => void }) {
  return (
    <span class="grip" title="Drag to reorder (Alt+↑, Alt+↓)" onPointerDown={(event) => event.button === 0 && onGrip(event)}>
      <GripIcon />
    </span>
  );
}

/** From nothing (1e-8) to all (1) on a log scale: errors are compared by their exponents. */
function barShare(error: number): number {
  if (!(error > 0)) return 0;
  return Math.min(1, Math.max(0.02, (Math.log10(error) + 8) / 8));
}

const errorText = (pair: Pair) => (isLost(pair) ? lostWord(pair) : short(errorOf(pair)));
/** Sums leave out what is not finite: of a pair that lost values they tell the rest, and are marked as that. */
const ofTheRest = (pair: Pair) => (isLost(pair) ? ", where both sides are finite" : "");

function ErrorCell({ pair, what }: { pair: Pair | null; what: string }) {
  if (!pair?.metrics) return <span class="cell error" role="gridcell" />;
  return (
    <span class="cell error" role="gridcell" title={`${what} ${exact(pair.metrics.rel_l2)}${ofTheRest(pair)}`}>
      <span class="track"><span class={`bar ${pair.verdict}`} style={{ width: `${barShare(errorOf(pair)) * 100}%` }} /></span>
      <span class="number">{errorText(pair)}</span>
    </span>
  );
}

/** That the two belong together is likely, not certain: how likely. */
function Doubt({ sure, evidence }: { sure: number | null; evidence?: string | null | undefined }) {
  if (sure === null) return null;
  return <span class="tag doubt" title={evidence ?? "How sure it is that the two belong together"}>{shareText(sure)} sure</span>;
}

/** Both names of what is the same in all layers. */
function TemplateName({ label, onlyB }: { label: string; onlyB: boolean }) {
  const [a, b] = onlyB ? [undefined, label] : label.split(" → ");
  return (
    <span class="template mono" title={label}>
      {a !== undefined && <Name text={a} title={label} />}{b !== undefined && <span class={onlyB ? "partner alone" : "partner"}><Name text={b} title={label} /></span>}
    </span>
  );
}

/** How the pairs of a group were found; the least sure of them speaks for all. */
function Found({ pairs }: { pairs: readonly Pair[] }) {
  const paired = pairs.filter((pair) => !isUnmatched(pair));
  const strategies = [...new Set(paired.map((pair) => foundBy(pair.strategy)))];
  const least = paired.reduce<Pair | null>((x, y) => (doubtOf(y) !== null && (x === null || y.sure! < x.sure!) ? y : x), null);
  return (
    <span class="cell found" role="gridcell" title={strategies.length ? `paired by ${strategies.join(", ")}` : ""}>
      {least && <Doubt sure={doubtOf(least)} evidence={least.evidence} />}{strategies.length > 0 && <span class="dim">by {strategies.join(", ")}</span>}
    </span>
  );
}

export function GroupRowView({ row, index, top, current, templates, onGrip, onToggle }: RowProps & { row: GroupRow; templates: boolean; onToggle: () => void }) {
  const counts = tally(row.pairs);
  const compared = row.pairs.filter((pair) => !Number.isNaN(errorOf(pair)));
  const worst = compared.length ? compared.reduce((x, y) => (errorOf(y) > errorOf(x) ? y : x)) : null;
  return (
    <div class={`row group${templates ? " of-template" : ""}${current ? " current" : ""}`} role="row" id={`row-${index}`} aria-rowindex={index + 2} aria-level={1}
      aria-expanded={row.open} aria-selected={current} style={{ top: `${top}px` }} onClick={onToggle}>
      <span class="cell heading" role="gridcell">
        <Grip onGrip={onGrip} /><span class="chevron" aria-hidden="true">{row.open ? "▾" : "▸"}</span>
        {templates && counts[0] && <Mark verdict={counts[0][0]} />}
        {templates ? <TemplateName label={row.label} onlyB={row.pairs.every((pair) => !pair.a)} /> : <Name text={row.label} />}<span class="dim tally-count">{counts.length !== 1 || !templates ? count(row.pairs.length) : ""}</span>
      </span>
      <span class="cell tally" role="gridcell">
        {counts.map(([verdict, n]) => (
          <span key={verdict} class={verdict} title={`${n} ${VERDICT_WORDS[verdict]}`}>
            <Mark verdict={verdict} />{count(n)}<span class="sr-only"> {VERDICT_WORDS[verdict]}</span>
          </span>
        ))}
      </span>
      <ErrorCell pair={worst} what="largest relative error" />
      {templates && <Found pairs={row.pairs} />}
    </div>
  );
}

interface PairRowProps extends RowProps {
  row: PairRow;
  id: string;
  opened: boolean;
  first: boolean;
  onOpen: () => void;
  onPair: () => void;
}

const LONG = 32;

/** What the heading has said already is left out. A long name is cut in the middle, where its layer stands: there the place is told. */
function titleOf({ pair, group }: PairRow): string {
  if (!pair.a) return bare(pair.name); // its stage is made of B's name, which may be of no scheme
  if (pair.layer !== null && group === String(pair.layer)) return pair.stage;
  if (pair.layer !== null && (group === pair.stage || (group !== null && group === templateOf(pair)))) return `layer ${pair.layer}`;
  return pair.name.length > LONG ? placeOf(pair) : pair.name;
}

function PairName({ row, id, first }: { row: PairRow; id: string; first: boolean }) {
  const { pair } = row;
  const names = [...new Set([pair.a?.name, pair.b?.name])].filter(Boolean);
  const also = (["a", "b"] as const).flatMap((side) => aliasesOf(pair, side).map((name) => `${side.toUpperCase()} also: ${name}`));
  return (
    <span class="cell title" role="gridcell">
      <span class={pair.a ? "own" : "own alone"}>
        <a href={pairAddress(id, pair.index)} tabIndex={-1}><Name text={titleOf(row)} title={[...names, ...also].join("\n")} /></a>
        {first && <span class="tag">first</span>}
        <Doubt sure={doubtOf(pair)} evidence={pair.evidence} />
        {also.length > 0 && <span class="also dim" title={also.join("\n")}>+{count(also.length)} {also.length === 1 ? "name" : "names"}</span>}
      </span>
      {isRenamed(pair) && <span class="partner"><Name text={bare(pair.b!.name)} title={pair.b!.name} /></span>}
    </span>
  );
}

function Numbers({ pair, onPair }: { pair: Pair; onPair: () => void }) {
  const m = measured(pair.metrics), times = timesFloor(pair), why = whyOf(pair);
  return (
    <>
      <ErrorCell pair={pair} what="relative error" />
      <span class="cell floor number" role="gridcell" title={pair.floor ? `noise floor ${exact(pair.floor)}` : ""}>{times === null ? "" : `${short(times, 2)} ×`}</span>
      <span class="cell max number" role="gridcell" title={m ? `largest difference ${exact(m.max_abs)}${ofTheRest(pair)}` : ""}>{m && (isLost(pair) ? lostWord(pair) : short(m.max_abs))}</span>
      <span class="cell cosine number" role="gridcell" title={m ? `cosine ${exact(m.cosine)}${ofTheRest(pair)}` : ""}>{m && !isLost(pair) ? similarity(m.cosine) : ""}</span>
      <span class="cell why" role="gridcell" title={pair.diagnosis?.[0]?.detail ?? pair.reason}>
        {isUnmatched(pair)
          ? <button type="button" class="plain" onClick={onPair} aria-label={`Pair ${placeOf(pair)} by hand`}><LinkIcon /> pair…</button>
          : <>{why && <span class="cause">{why}</span>}<span class="detail">{pair.diagnosis?.[0]?.detail ?? pair.reason}</span></>}
      </span>
    </>
  );
}

export function PairRowView({ row, index, top, current, opened, first, id, onGrip, onOpen, onPair }: PairRowProps) {
  const { pair } = row;
  const kind = `row pair ${pair.verdict}${current ? " current" : ""}${opened ? " opened" : ""}`;
  const dimensions = shapeOf(pair);
  return (
    <div class={kind} role="row" id={`row-${index}`} aria-rowindex={index + 2} aria-level={row.group === null ? 1 : 2} aria-selected={current}
      style={{ top: `${top}px` }} onClick={(event) => !(event.target as Element).closest("a, button") && onOpen()}>
      <span class="cell verdict" role="gridcell" title={pair.reason}>
        <Grip onGrip={onGrip} /><Mark verdict={pair.verdict} />{VERDICT_WORDS[pair.verdict]}
      </span>
      <PairName row={row} id={id} first={first} />
      <span class="cell shape mono" role="gridcell" title={`${shape(dimensions)}${pair.layout?.steps.length ? "\n" + pair.layout.steps.join("\n") : ""}`}>{shape(dimensions)}</span>
      <span class="cell types mono" role="gridcell" title={typesOf(pair)}>{typesOf(pair)}</span>
      {pair.verdict === "error" ? <span class="cell reason" role="gridcell" title={pair.reason}>{pair.reason}</span> : <Numbers pair={pair} onPair={onPair} />}
    </div>
  );
}
