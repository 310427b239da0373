// One pair (or one tensor of an exploration), looked at closely: what was found on top, then the view that was
// chosen, with the figures beside it. The server computes; this draws.
import { useEffect, useMemo } from "preact/hooks";
import * as api from "../../api";
import { Heatmap } from "../../heatmap/Heatmap";
import { planeOf } from "../../heatmap/plane";
import { placeOf } from "../../format";
import { useKeys } from "../../keys";
import type { Comparison, Pair, PairDetail, TensorStats, Which } from "../../model";
import { findingsOf } from "../../pairs/measure";
import { CompareAgain, isOutdated } from "../comparison/Standing";
import { AxisChoice } from "./AxisChoice";
import { type Measure, measureOf } from "./cell";
import { ExportSlice } from "./ExportSlice";
import { Diagnoses, LayoutLine, PairingLines, MetricsTable, SideLine, StatsTable, VerdictLine } from "./Facts";
import { Find } from "./Find";
import { useLatest } from "./latest";
import { Look, mostInGrid, mostInRow, type View } from "./look";
import { Mapping } from "./Mapping";
import { NumberField, Slider, Sliders } from "./Sliders";
import { Spread } from "./Spread";
import { Values } from "./Values";
import { WorstButtons, WorstList, WorstTable } from "./Worst";

export interface InspectorProps {
  comparison: Comparison;
  /** Index of the pair in the result; in an exploration that of the tensor. */
  index: number;
  pair: Pair | null;
  tensor: TensorStats | null;
}

const viewNames: Record<View, string> = {
  "1d": "1-D", "2d": "2-D", flat: "Flattened", heatmap: "Heatmap", spread: "Distributions", mapping: "Mapping",
};

function viewsOf(detail: PairDetail, look: Look): View[] {
  const hasBoth = detail.a !== null && detail.b !== null;
  const mapping: View[] = hasBoth ? ["mapping"] : [];
  if (look.size === 0) return ["1d", ...mapping];
  if (look.shape.length === 0) return ["1d", ...mapping];
  const flat: View[] = look.shape.length >= 2 ? ["2d", "flat"] : [];
  return ["1d", ...flat, "heatmap", "spread", ...mapping];
}

function Head({ pair, tensor, detail }: { pair: Pair | null; tensor: TensorStats | null; detail: PairDetail | null }) {
  const a = pair?.a ?? detail?.a ?? tensor;
  const b = pair?.b ?? detail?.b ?? null;
  const title = pair ? placeOf(pair) : tensor?.name;
  const findings = pair ? findingsOf(pair) : [];
  return (
    <header class="inspector-head">
      <h2>{title}</h2>
      {a && <SideLine letter={pair ? "A" : ""} tensor={a} title={title} />}
      {b && <SideLine letter="B" tensor={b} title={title} />}
      {pair && <VerdictLine pair={pair} />}
      {pair && <PairingLines pair={pair} />}
      {pair?.layout && <LayoutLine layout={pair.layout} />}
      {detail?.as_real && <p class="layout-line dim">Complex: seen as real and imaginary parts, on one more axis at the end. Metrics are of the complex numbers.</p>}
      {findings.length > 0 && <Diagnoses list={findings} />}
    </header>
  );
}

function Tabs({ look, available }: { look: Look; available: readonly View[] }) {
  return (
    <div class="view-tabs" role="group" aria-label="View (v)">
      {available.map((view) => (
        <button key={view} type="button" aria-pressed={look.view.value === view} onClick={() => (look.view.value = view)}>{viewNames[view]}</button>
      ))}
    </div>
  );
}

interface PlaceProps {
  id: string;
  detail: PairDetail;
  look: Look;
}

/** The sliders that the view needs, and how many values it shows. */
function PlaceControls({ id, detail, look }: PlaceProps) {
  const profile = useLatest(look.size > 1 ? `${id} ${detail.index}` : null, (signal) => api.profile(id, detail.index, signal));
  const hasBoth = detail.a !== null && detail.b !== null;
  const title = hasBoth ? "rms difference" : "rms";
  const view = look.view.value;
  const last = look.shape.length - 1;
  const [down, across] = look.axes.value;
  if (view === "flat") {
    return (
      <div class="place-controls">
        <Slider label="element" size={look.size} value={look.flat.value} onChange={(flat) => look.goToFlat(flat)} />
        <NumberField label="values" value={look.count.value} most={mostInRow} onChange={(n) => look.setCount(n)} />
      </div>
    );
  }
  const hidden = view === "heatmap" ? planeOf(id, detail, look).axes : [];
  const noteOf = (axis: number) => (view === "2d" ? (axis === down ? "rows" : axis === across ? "columns" : undefined)
    : view === "1d" && axis === last ? "values" : undefined);
  if (hidden.length === look.shape.length && view === "heatmap") return null;
  return (
    <div class="place-controls">
      <Sliders look={look} profile={profile.data} profileTitle={title} noteOf={noteOf} hidden={hidden} />
      {look.shape.length > 0 && view !== "heatmap" && (
        <div class="place-counts">
          {view === "2d" && <AxisChoice look={look} />}
          {view === "2d" && <NumberField label="rows shown" value={look.rows.value} most={mostInGrid} onChange={(n) => look.setRows(n)} />}
          <NumberField label={view === "2d" ? "columns shown" : "values"} value={look.count.value} most={view === "2d" ? mostInGrid : mostInRow} onChange={(n) => look.setCount(n)} />
        </div>
      )}
    </div>
  );
}

function CellLegend({ measure, hasBoth }: { measure: Measure; hasBoth: boolean }) {
  return (
    <p class="val-legend dim">
      <span><i class="val cold sample" />negative</span><span><i class="val hot sample" />positive, deeper is larger</span>
      {hasBoth && <><span><i class="val small sample" />small difference</span><span><i class="val large sample" />large: {measure.rule}</span></>}
    </p>
  );
}

function Body({ id, detail, pair }: { id: string; detail: PairDetail; pair: Pair | null }) {
  const look = useMemo(() => new Look(detail.shape, detail.as_real), []);
  const worst = useMemo(() => new WorstList(look), []);
  const hasBoth = detail.a !== null && detail.b !== null;
  const available = viewsOf(detail, look);
  useEffect(() => look.follow(), []);
  useKeys("Inspector", [
    ...(hasBoth ? [
      { keys: ["m"], does: "jump to the largest difference", run: worst.first },
      { keys: ["n"], does: "next worst element", run: worst.next },
      { keys: ["p"], does: "previous worst element", run: worst.previous },
    ] : []),
    { keys: ["v"], does: "next view", run: () => look.nextView(available) },
  ]);
  const view = available.includes(look.view.value) ? look.view.value : "1d";
  const measure = measureOf(pair, detail.a_stats, detail.b_stats, detail.a?.dtype);
  const sides: Which[] = hasBoth ? ["a", "b", "difference"] : [detail.a ? "a" : "b"];
  const isValues = view === "1d" || view === "2d" || view === "flat";
  const isPlace = isValues || view === "heatmap";
  return (
    <div class="inspector-body">
      <div class="inspector-main">
        <div class="look-bar">
          <Tabs look={look} available={available} />
          {isPlace && hasBoth && <WorstButtons worst={worst} />}
          {isPlace && look.size > 0 && (
            <div class="look-tools">
              <Find id={id} index={detail.index} look={look} sides={sides.filter((side) => side !== "difference")} />
              {isValues && <ExportSlice id={id} index={detail.index} look={look} sides={sides} />}
            </div>
          )}
        </div>
        {isPlace && look.size > 0 && <PlaceControls id={id} detail={detail} look={look} />}
        {isValues && <Values id={id} index={detail.index} look={look} measure={measure} />}
        {isValues && look.size > 0 && <CellLegend measure={measure} hasBoth={hasBoth} />}
        {view === "heatmap" && <Heatmap id={id} detail={detail} look={look} />}
        {view === "spread" && <Spread id={id} index={detail.index} hasBoth={hasBoth} />}
        {view === "mapping" && <Mapping id={id} detail={detail} look={look} measure={measure} />}
      </div>
      <aside class="inspector-side">
        <MetricsTable detail={detail} pair={pair} />
        <StatsTable a={detail.a_stats} b={detail.b_stats} />
        {hasBoth && <WorstTable worst={worst} id={id} index={detail.index} />}
      </aside>
    </div>
  );
}

/** Two sides that do not line up have no common shape, but each has its own: mapping by hand is the way out. */
function ByHand({ id, pair }: { id: string; pair: Pair }) {
  const look = useMemo(() => new Look([]), []);
  useEffect(() => look.follow(), []);
  const detail: PairDetail = { index: pair.index, name: pair.name, shape: [], as_real: false, a: pair.a, b: pair.b, layout: null, metrics: null, a_stats: null, b_stats: null };
  return <Mapping id={id} detail={detail} look={look} measure={measureOf(pair, null, null, undefined)} />;
}

/** The server's sentence about an input that has changed since; the page may not know of it yet. */
const asksAgain = /; compare again$/;

export function Inspector({ comparison, index, pair, tensor }: InspectorProps) {
  const isByHand = pair?.verdict === "error" && pair.a !== null && pair.b !== null;
  const { data, error } = useLatest(isByHand ? null : `${comparison.id} ${index}`, (signal) => api.pair(comparison.id, index, signal));
  const offersAgain = error && asksAgain.test(error) && !isOutdated(comparison); // else the banner above does
  if (!pair && !tensor) return <p class="empty-note" role="alert">There is no pair {index} in this comparison.</p>;
  return (
    <section class="inspector" aria-label="Inspector" aria-busy={!data && !error && !isByHand}>
      <Head pair={pair} tensor={tensor} detail={data} />
      {error && <div class="empty-note" role="alert"><p>{error}</p>{offersAgain && <CompareAgain comparison={comparison} />}</div>}
      {isByHand && pair && <ByHand id={comparison.id} pair={pair} />}
      {!data && !error && !isByHand && <p class="empty-note">Reading both sides…</p>}
      {data && <Body id={comparison.id} detail={data} pair={pair} />}
    </section>
  );
}
