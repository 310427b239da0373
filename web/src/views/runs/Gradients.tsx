// The size of every gradient over the steps: a strip for each, dark where it is large, on one logarithmic scale.
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { number, short } from "../../format";
import type { Track } from "../../model";
import { colour, theme } from "../../theme";
import { Name } from "../../ui/Name";
import { sampleOf } from "./curve";
import { gradients } from "./run";

const FEW = 24;
const ROW = 14;

type Range = [low: number, high: number];

/** Powers of ten that all of them lie between. */
export function rangeOf(tracks: readonly Track[]): Range {
  let low = Infinity, high = -Infinity;
  for (const track of tracks)
    for (const point of track.points) {
      const value = sampleOf(point).high;
      if (value > 0 && Number.isFinite(value)) {
        low = Math.min(low, Math.log10(value));
        high = Math.max(high, Math.log10(value));
      }
    }
  return low > high ? [-8, 0] : [low, Math.max(high, low + 1)];
}

function Strip({ track, range }: { track: Track; range: Range }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const shown = theme.value;
  const [low, high] = range;
  useLayoutEffect(() => {
    const target = canvas.current!;
    target.width = Math.max(1, track.points.length);
    target.height = 1;
    const g = target.getContext("2d")!;
    const channels = colour("--cold"), bad = colour("--bad-mark");
    track.points.forEach((point, at) => {
      const { last, high: most } = sampleOf(point);
      const share = most > 0 ? Math.min(1, Math.max(0, (Math.log10(most) - low) / (high - low))) : 0;
      g.fillStyle = Number.isFinite(last) ? `rgb(${channels} / ${0.06 + 0.94 * share})` : bad;
      g.fillRect(at, 0, 1, 1);
    });
  }, [track, low, high, shown]);
  const now = number(track.last);
  return (
    <li>
      <span class="mono strip-name"><Name text={track.name} /></span>
      <canvas ref={canvas} style={{ height: `${ROW}px` }} role="img" aria-label={`${track.name}: ${short(track.last)} at step ${track.step}`} />
      <span class={`number${Number.isFinite(now) ? "" : " lost"}`}>{short(track.last)}</span>
    </li>
  );
}

export function Gradients() {
  const [all, setAll] = useState(false);
  const tracks = gradients.value;
  if (tracks.length === 0) return null;
  const range = rangeOf(tracks);
  const rows = all ? tracks : tracks.slice(0, FEW);
  return (
    <section class="panel run-section" aria-label="Gradients">
      <header>
        <h2>Gradients</h2>
        <span class="legend"><span>root mean square</span><span>{short(10 ** range[0], 2)}<i class="gradient-scale" />{short(10 ** range[1], 2)}</span><span><i class="lost-cell" />not finite</span></span>
      </header>
      <ul class="strips">{rows.map((track) => <Strip key={track.name} track={track} range={range} />)}</ul>
      {tracks.length > FEW && <p><button type="button" aria-expanded={all} onClick={() => setAll(!all)}>{all ? "Fewer" : `All ${tracks.length}`}</button></p>}
    </section>
  );
}
