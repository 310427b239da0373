// How the values are spread: both histograms over one range, and how A's values meet B's.
import { useEffect, useRef, useState } from "preact/hooks";
import * as api from "../../api";
import { count, short } from "../../format";
import type { Density, Histogram } from "../../model";
import { theme } from "../../theme";
import { clip } from "./indexing";
import { useLatest } from "./latest";
import { densityFrame, drawDensity, drawHistogram, histogramFrame } from "./plots";

const bins = 100;
const cells = 128;

/** Draws now, on a change of size, and on a change of theme. */
function usePlot(draw: (canvas: HTMLCanvasElement) => void, inputs: unknown[]) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const shade = theme.value;
  useEffect(() => {
    const target = canvas.current!;
    const watcher = new ResizeObserver(() => draw(target));
    watcher.observe(target);
    draw(target);
    return () => watcher.disconnect();
  }, [...inputs, shade]);
  return canvas;
}

const total = (counts: readonly number[]) => counts.reduce((sum, n) => sum + n, 0);

function HistogramPlot({ data }: { data: Histogram }) {
  const [isLog, setLog] = useState(false);
  const [bin, setBin] = useState<number | null>(null);
  const canvas = usePlot((target) => drawHistogram(target, data, isLog, bin), [data, isLog, bin]);
  const hover = (event: PointerEvent) => {
    const box = canvas.current!.getBoundingClientRect(), frame = histogramFrame(data);
    const share = (event.clientX - box.left - frame.left) / (box.width - frame.left - frame.right);
    setBin(clip(Math.floor(share * (data.edges.length - 1)), 0, data.edges.length - 2));
  };
  const totals = [data.a && `A ${count(total(data.a))}`, data.b && `B ${count(total(data.b))}`].filter(Boolean).join(", ");
  const edges = bin === null ? null : `${short(data.edges[bin] ?? 0, 4)} to ${short(data.edges[bin + 1] ?? 0, 4)}`;
  return (
    <figure class="graph">
      <figcaption>
        <b>Values</b>
        {data.a && <span class="swatch swatch-a">A</span>}
        {data.b && <span class="swatch swatch-b">B</span>}
        <label><input type="checkbox" checked={isLog} onChange={(event) => setLog(event.currentTarget.checked)} /> log counts</label>
      </figcaption>
      <canvas ref={canvas} role="img" aria-label={`Histogram of ${totals} finite values in ${data.edges.length - 1} bins`}
        onPointerMove={hover} onPointerLeave={() => setBin(null)} />
      <p class="dim graph-note">
        {bin === null ? `${totals} finite values` : <span class="mono">{edges}:{data.a && ` A ${count(data.a[bin] ?? 0)}`}{data.b && ` B ${count(data.b[bin] ?? 0)}`}</span>}
      </p>
    </figure>
  );
}

function DensityPlot({ data }: { data: Density }) {
  const [cell, setCell] = useState<{ row: number; column: number } | null>(null);
  const canvas = usePlot((target) => drawDensity(target, data), [data]);
  const step = (data.high - data.low) / data.size;
  const hover = (event: PointerEvent) => {
    const box = canvas.current!.getBoundingClientRect(), frame = densityFrame(data);
    const side = Math.min(box.width - frame.left - frame.right, box.height - frame.top - frame.bottom) / data.size;
    const column = Math.floor((event.clientX - box.left - frame.left) / side);
    const row = data.size - 1 - Math.floor((event.clientY - box.top - frame.top) / side);
    const isInside = column >= 0 && row >= 0 && column < data.size && row < data.size;
    setCell(isInside ? { row, column } : null);
  };
  const all = total(data.counts);
  return (
    <figure class="graph">
      <figcaption><b>A against B</b><span class="dim">depth: log of the count; on the line they agree</span></figcaption>
      <canvas ref={canvas} class="square" role="img" aria-label={`Density of ${count(all)} pairs of values, B over A, from ${short(data.low)} to ${short(data.high)}`}
        onPointerMove={hover} onPointerLeave={() => setCell(null)} />
      <p class="dim graph-note">
        {cell === null ? `${count(all)} pairs of finite values` : (
          <span class="mono">
            A {short(data.low + cell.column * step)}, B {short(data.low + cell.row * step)}: {count(data.counts[cell.row * data.size + cell.column] ?? 0)}
          </span>
        )}
      </p>
    </figure>
  );
}

export function Spread({ id, index, hasBoth }: { id: string; index: number; hasBoth: boolean }) {
  const histogram = useLatest(`${id} ${index}`, (signal) => api.histogram(id, index, bins, signal));
  const density = useLatest(hasBoth ? `${id} ${index}` : null, (signal) => api.density(id, index, cells, signal));
  const trouble = histogram.error ?? density.error;
  return (
    <div class="graphs" aria-busy={!histogram.data}>
      {trouble && <p class="empty-note" role="alert">{trouble}</p>}
      {histogram.data && <HistogramPlot data={histogram.data} />}
      {density.data && <DensityPlot data={density.data} />}
    </div>
  );
}
