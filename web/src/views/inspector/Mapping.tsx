// Manual mapping: both shapes, a slice of each, and what the two slices have to do with each other.
import { useEffect } from "preact/hooks";
import * as api from "../../api";
import { count, exact, number, plural, shape as shapeText, short, similarity, statistic } from "../../format";
import type { Mapped, PairDetail, TensorInfo } from "../../model";
import { keep, pageState } from "../../state";
import { Field } from "../../ui/Field";
import { notify } from "../../ui/Notices";
import { cellClass, cellText, depthOf, type Measure } from "./cell";
import { useLatest } from "./latest";
import type { Look } from "./look";
import { type AxisCut, cutText, firstValues, mostMapped, parseCut } from "./cuts";
import { suggestions } from "./mappings";
import { Slider } from "./Sliders";

/** A moment without change before a mapping is kept: sliders change it many times a second. */
const keepAfterMs = 600;

interface SideProps {
  letter: string;
  tensor: TensorInfo;
  text: string;
  onChange: (text: string) => void;
}

function SideCut({ letter, tensor, text, onChange }: SideProps) {
  const cuts = parseCut(text, tensor.shape);
  const change = (axis: number, cut: AxisCut) => cuts && onChange(cutText(cuts.map((was, i) => (i === axis ? cut : was))));
  return (
    <fieldset class="side-cut">
      <legend><b class="letter">{letter}</b> <span class="mono">{shapeText(tensor.shape)}</span> <span class="mono dim">{tensor.dtype}</span></legend>
      <label class="cut-text">slice <Field class="mono" value={text} onDone={onChange} /></label>
      {cuts?.map(({ from, count: length }, axis) => (
        <div key={axis} class="cut-axis">
          <Slider label={`${letter} axis ${axis}`} size={tensor.shape[axis] ?? 0} value={from}
            onChange={(index) => change(axis, { from: index, count: length === null ? null : Math.min(length, (tensor.shape[axis] ?? 0) - index) })} />
          <label class="number-field" title="How many values along this axis; 1 drops it">
            count
            <Field type="number" class="mono" min={1} max={tensor.shape[axis]} value={length ?? 1}
              onDone={(typed) => {
                const wanted = Math.min(Math.max(Math.trunc(Number(typed)) || 1, 1), (tensor.shape[axis] ?? 1) - from, mostMapped);
                change(axis, { from, count: wanted === 1 ? null : wanted });
              }} />
          </label>
        </div>
      ))}
    </fieldset>
  );
}

/** The largest size in the slices, for pairs that could not be compared and have no measure. */
const largestOf = ({ a, b }: Mapped) =>
  Math.max(...[a, b].flatMap((side) => (side ? [side.stats.min, side.stats.max] : [])).map((x) => Math.abs(number(x))).filter(Number.isFinite), 0);

function Result({ mapped, measure }: { mapped: Mapped; measure: Measure }) {
  const { difference } = mapped;
  const largest = measure.largest || largestOf(mapped);
  const rows = [["A", mapped.a], ["B", mapped.b]] as const;
  return (
    <div class="mapped">
      {rows.map(([letter, side]) => side && (
        <div key={letter}>
          <p>
            <b class="letter">{letter}</b> <span class="mono">{shapeText(side.shape)}</span>{" "}
            <span class="dim">mean {statistic(side.stats.mean)}, std {statistic(side.stats.std)}, {statistic(side.stats.min)} to {statistic(side.stats.max)}</span>
          </p>
          <ol class="mapped-values" aria-label={`Values of ${letter}`}>
            {side.values.slice(0, 512).map((value, i) => (
              <li key={i} class={cellClass(number(value), "none")} title={exact(value)} style={{ "--depth": depthOf(largest, number(value)) }}>
                {cellText(number(value))}
              </li>
            ))}
          </ol>
          {side.values.length > 512 && <p class="dim">the first 512 of {count(side.values.length)}</p>}
        </div>
      ))}
      {difference ? (
        <dl class="figures" aria-label="Difference of the slices">
          {(["max_abs", "mean_abs", "max_rel", "mean_rel", "mse"] as const).map((key) => (
            <div key={key}><dt>{key.replace("_", " ")}</dt><dd class="mono" title={exact(difference[key])}>{short(difference[key], 4)}</dd></div>
          ))}
          <div><dt>cosine</dt><dd class="mono" title={exact(difference.cosine)}>{similarity(difference.cosine)}</dd></div>
          <div><dt>values</dt><dd class="mono">{count(difference.count)}</dd></div>
        </dl>
      ) : (
        <p role="status">The slices hold {plural(mapped.a?.values.length ?? 0, "value")} of A and {count(mapped.b?.values.length ?? 0)} of B: a difference needs as many of each.</p>
      )}
    </div>
  );
}

export function Mapping({ id, detail, look, measure }: { id: string; detail: PairDetail; look: Look; measure: Measure }) {
  const { a, b, index } = detail;
  const kept = pageState.value.mappings?.[index];
  const offers = suggestions(detail, look.at.value);
  const textA = look.mapA.value ?? kept?.a ?? offers[0]?.a ?? firstValues(a?.shape ?? []);
  const textB = look.mapB.value ?? kept?.b ?? offers[0]?.b ?? firstValues(b?.shape ?? []);
  const set = (toA: string, toB: string) => {
    look.mapA.value = toA;
    look.mapB.value = toB;
  };
  const isSet = look.mapA.value !== null;
  useEffect(() => {
    if (!isSet || (kept?.a === textA && kept.b === textB)) return;
    const timer = window.setTimeout(() => {
      keep({ mappings: { [index]: { a: textA, b: textB } } }).catch(() => notify("the mapping could not be kept", true));
    }, keepAfterMs);
    return () => window.clearTimeout(timer);
  }, [textA, textB, isSet]);
  const { data, error } = useLatest(`${textA} | ${textB}`, (signal) => api.mapped(id, index, textA, textB, signal));
  if (!a || !b) return <p class="empty-note">A mapping needs both sides.</p>;
  return (
    <div class="mapping">
      {offers.length > 0 && (
        <div class="offers" role="group" aria-label="Common mappings">
          <span class="dim">Common mappings</span>
          {offers.map((offer) => (
            <button key={offer.name} type="button" aria-pressed={offer.a === textA && offer.b === textB} onClick={() => set(offer.a, offer.b)}
              title={`A[${offer.a}] with B[${offer.b}]`}>{offer.name}</button>
          ))}
        </div>
      )}
      <div class="side-cuts">
        <SideCut letter="A" tensor={a} text={textA} onChange={(text) => set(text, textB)} />
        <SideCut letter="B" tensor={b} text={textB} onChange={(text) => set(textA, text)} />
      </div>
      {error && <p class="empty-note" role="alert">{error}</p>}
      {data && !error && <Result mapped={data} measure={measure} />}
    </div>
  );
}
