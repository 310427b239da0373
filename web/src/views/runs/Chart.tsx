// A small chart of one series over the steps, with what it is now in words.
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { short } from "../../format";
import type { TrailPoint } from "../../model";
import { Name } from "../../ui/Name";
import { curveOf, SIDE, type Label, type Sample } from "./curve";

const HEIGHT = 132;

interface Props {
  title: string;
  now: string;
  points: readonly TrailPoint[];
  log?: boolean;
  label?: Label;
}

function nearest(samples: readonly Sample[], x: (step: number) => number, at: number): Sample | null {
  let best: Sample | null = null;
  for (const sample of samples) if (!best || Math.abs(x(sample.step) - at) < Math.abs(x(best.step) - at)) best = sample;
  return best;
}

function Readout({ sample, x, width, label }: { sample: Sample; x: number; width: number; label: Label }) {
  const style = x > width / 2 ? { right: `${width - x + 8}px` } : { left: `${x + 8}px` };
  return (
    <div class="readout" style={style} aria-hidden="true">
      <b>{label(sample.last)}</b>
      {sample.low !== sample.high && <span class="dim">{label(sample.low)} to {label(sample.high)}</span>}
      <span class="dim">step {sample.step}</span>
    </div>
  );
}

export function Chart({ title, now, points, log = false, label }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  const [over, setOver] = useState<number | null>(null);
  useLayoutEffect(() => {
    const measure = () => setWidth(box.current!.clientWidth);
    const observer = new ResizeObserver(measure);
    observer.observe(box.current!);
    measure();
    return () => observer.disconnect();
  }, []);
  const curve = useMemo(() => curveOf(points, Math.max(width, 80), HEIGHT, log, label), [points, width, log, label]);
  const sample = over === null ? null : nearest(curve.samples, curve.x, over);
  const first = curve.samples[0], last = curve.samples.at(-1);
  return (
    <figure class="panel run-chart">
      <figcaption><h3><Name text={title} /></h3><b class="mono">{now}</b></figcaption>
      <div class="run-plot" ref={box} onMouseMove={(event) => setOver(event.clientX - box.current!.getBoundingClientRect().left)} onMouseLeave={() => setOver(null)}>
        {width > 0 && (
          <svg width={width} height={HEIGHT} role="img" aria-label={`${title} over ${curve.samples.length} points, now ${now}`}>
            {curve.ticks.map((tick) => (
              <g key={tick.label}>
                <line class="grid" x1={SIDE.left} x2={width - SIDE.right} y1={Math.round(tick.y) + 0.5} y2={Math.round(tick.y) + 0.5} />
                <text class="tick right" x={SIDE.left - 6} y={tick.y + 4}>{tick.label}</text>
              </g>
            ))}
            {first && <text class="tick" x={SIDE.left} y={HEIGHT - 4}>{first.step}</text>}
            {last && last !== first && <text class="tick right" x={width - SIDE.right} y={HEIGHT - 4}>{last.step}</text>}
            <path class="band" d={curve.band} />
            <path class="line" d={curve.line} />
            {curve.gaps.map(([from, to]) => <rect key={from} class="gap" x={from - 1} width={to - from + 2} y={SIDE.top} height={HEIGHT - SIDE.top - SIDE.bottom}><title>not finite</title></rect>)}
            {curve.samples.length === 1 && Number.isFinite(last!.last) && <circle class="dot" cx={curve.x(last!.step)} cy={curve.y(last!.last)} r="3" />}
            {sample && Number.isFinite(sample.last) && <circle class="dot" cx={curve.x(sample.step)} cy={curve.y(sample.last)} r="3.5" />}
          </svg>
        )}
        {sample && <Readout sample={sample} x={curve.x(sample.step)} width={width} label={label ?? short} />}
      </div>
    </figure>
  );
}
