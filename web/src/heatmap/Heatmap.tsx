// The heatmap of a pair with its controls, legend and read-out.
import { useEffect, useRef, useState } from "preact/hooks";
import * as api from "../api";
import { count, exact, number } from "../format";
import type { PairDetail, TensorStats, Which } from "../model";
import { message } from "../state";
import { colour, theme } from "../theme";
import { Field } from "../ui/Field";
import { AxisChoice } from "../views/inspector/AxisChoice";
import { useLatest } from "../views/inspector/latest";
import type { Look } from "../views/inspector/look";
import { indexText } from "../views/inspector/Tip";
import { firstScale, rampOf, type Scale, type ScaleKind, type Spread } from "./colour";
import { Legend, SpecialColours } from "./Legend";
import { Picture, type Spot } from "./picture";
import { planeOf, type Shown } from "./plane";

interface Props {
  id: string;
  detail: PairDetail;
  look: Look;
}

const spreadOf = (stats: TensorStats | null): Spread[] =>
  stats ? [{ min: number(stats.min), max: number(stats.max), mean: number(stats.mean), std: number(stats.std) }] : [];

function scalesOf(detail: PairDetail, look: Look): { values: Scale; difference: Scale } {
  const kind = look.scale.value;
  const values = { ...firstScale([...spreadOf(detail.a_stats), ...spreadOf(detail.b_stats)]), ...look.range.value, kind };
  const most = Math.min(number(detail.metrics?.max_abs ?? 0), 4 * number(detail.metrics?.rmse ?? 0)) || 1;
  const difference = { low: -most, high: most, ...look.differenceRange.value, kind };
  return { values, difference };
}

/** The exact values under the cursor; a moment after it stands still. */
function Readout({ id, detail, at }: { id: string; detail: PairDetail; at: number[] | null }) {
  const text = at && at.join(",");
  const { data, key } = useLatest(text, (signal) => api.values(id, detail.index, { slice: text ?? "" }, signal));
  if (!text) return <p class="cursor-line dim">Point at a cell, or use the arrow keys. Enter or a click takes the sliders there.</p>;
  const isFresh = key === text;
  return (
    <p class="cursor-line mono" role="status">
      <span>{indexText(at)}</span>
      {data?.a && <span>A {isFresh ? exact(data.a[0]) : "…"}</span>}
      {data?.b && <span>B {isFresh ? exact(data.b[0]) : "…"}</span>}
      {data?.difference && <span>B − A {isFresh ? exact(data.difference[0]) : "…"}</span>}
    </p>
  );
}

function Controls({ look, picture }: { look: Look; picture: Picture | null }) {
  const width = Math.max(1, Math.round(Math.sqrt(look.size)));
  return (
    <div class="heatmap-controls">
      {look.fold.value === 0 && look.shape.length >= 2 && <AxisChoice look={look} />}
      <label title="The flattened tensor, in rows of this many">
        <input type="checkbox" checked={look.fold.value > 0} onChange={(event) => (look.fold.value = event.currentTarget.checked ? width : 0)} /> flattened
      </label>
      {look.fold.value > 0 && (
        <label>width <Field type="number" class="mono" min={1} max={look.size} value={look.fold.value}
          onDone={(text) => (look.fold.value = Math.min(Math.max(Math.trunc(Number(text)) || width, 1), look.size))} /></label>
      )}
      <label>scale
        <select aria-label="scale" value={look.scale.value} onChange={(event) => (look.scale.value = event.currentTarget.value as ScaleKind)}>
          <option value="linear">linear</option><option value="symlog">symlog</option><option value="log">log |x|</option>
        </select>
      </label>
      <label title="What a cell shows that covers many elements">zoomed out
        <select aria-label="zoomed out" value={look.reduce.value} onChange={(event) => (look.reduce.value = event.currentTarget.value as "mean" | "max")}>
          <option value="max">largest</option><option value="mean">mean</option>
        </select>
      </label>
      <span class="zoom-buttons">
        <button type="button" onClick={() => picture?.zoom(1 / 1.5)} aria-label="Zoom out" title="Zoom out (-)">−</button>
        <button type="button" onClick={() => picture?.zoom(1.5)} aria-label="Zoom in" title="Zoom in (+)">+</button>
        <button type="button" onClick={() => picture?.fit()} title="The whole tensor (0)">Fit</button>
      </span>
    </div>
  );
}

export function Heatmap({ id, detail, look }: Props) {
  const host = useRef<HTMLDivElement>(null);
  const below = useRef<HTMLCanvasElement>(null);
  const above = useRef<HTMLCanvasElement>(null);
  const [picture, setPicture] = useState<Picture | null>(null);
  const [trouble, setTrouble] = useState<string | null>(null);
  const [cursor, setCursor] = useState<Spot | null>(null);
  const shown: Shown = planeOf(id, detail, look);
  const latest = useRef(shown);
  latest.current = shown;

  useEffect(() => {
    let made: Picture;
    try {
      made = new Picture(host.current!, below.current!, above.current!,
        () => ({ ink: colour("--ink"), dim: colour("--dim"), line: colour("--line"), font: colour("--mono") || "monospace" }),
        {
          onCursor: setCursor,
          onPick: (spot) => look.goTo(latest.current.placeOf(spot)),
          onError: (error) => setTrouble(message(error)),
        });
    } catch {
      setTrouble("This browser has no WebGL2, which the heatmap is drawn with. The other views work without it.");
      return;
    }
    setPicture(made);
    return () => made.release();
  }, []);
  const { values, difference } = scalesOf(detail, look);
  const shade = theme.value;
  useEffect(() => {
    const ramp = rampOf(values);
    picture?.show(shown.plane, { a: ramp, b: ramp, difference: rampOf(difference) });
  }, [picture, shown.plane.id, JSON.stringify([values, difference]), shade]);
  const at = look.at.value;
  const isFirst = useRef(true);
  useEffect(() => {
    // A jump (max diff, find, a slider of a shown axis) brings the place into view; opening shows the whole.
    if (!isFirst.current) picture?.goTo(shown.spotOf(at));
    if (picture) isFirst.current = false;
  }, [picture, shown.spotOf(at).row, shown.spotOf(at).column]);
  const isHidden = picture === null && trouble !== null;
  return (
    <div class="heatmap">
      <Controls look={look} picture={picture} />
      {trouble && <p class="empty-note" role="alert">{trouble}</p>}
      <div class="heatmap-host" ref={host} hidden={isHidden} tabIndex={0} role="application" aria-roledescription="heatmap"
        aria-label={`Heatmap of ${shown.plane.whats.map((what: Which) => ({ a: "A", b: "B", difference: "the difference" })[what]).join(", ")}: ${count(shown.plane.rows)} rows, ${count(shown.plane.columns)} columns. Arrows move, plus and minus zoom, 0 fits.`}>
        <canvas ref={below} /><canvas ref={above} />
      </div>
      <Readout id={id} detail={detail} at={cursor && shown.placeOf(cursor)} />
      <div class="ramps">
        <Legend title={detail.a && detail.b ? "A, B" : "values"} scale={values} isByHand={look.range.value !== null} onRange={(r) => (look.range.value = r)} />
        {detail.a && detail.b && (
          <Legend title="B − A" scale={difference} isByHand={look.differenceRange.value !== null} onRange={(r) => (look.differenceRange.value = r)} />
        )}
        <SpecialColours />
      </div>
    </div>
  );
}
