// Error through the layers: one point for each pair in order of execution, the noise floor as a dashed line.
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { kindWords, placeOf, plural, short } from "../../format";
import type { DiffResult, Pair } from "../../model";
import { moveTo, openPair } from "../../pairs/list";
import { errorOf, VERDICT_WORDS } from "../../pairs/measure";
import { theme } from "../../theme";
import { Mark } from "../../ui/Mark";
import { charted, pointAt, scaleOf, type Point } from "./chartScale";
import { drawChart } from "./drawChart";

function useWidth<T extends HTMLElement>() {
  const box = useRef<T>(null);
  const [size, setSize] = useState({ width: 0, height: 0 });
  useLayoutEffect(() => {
    const observer = new ResizeObserver(() => setSize({ width: box.current!.clientWidth, height: box.current!.clientHeight }));
    observer.observe(box.current!);
    return () => observer.disconnect();
  }, []);
  return { box, ...size };
}

function Readout({ point, width }: { point: Point; width: number }) {
  const { pair } = point, error = errorOf(pair);
  const onLeft = point.x > width * 0.6;
  return (
    <div class="readout" style={onLeft ? { right: `${width - point.x + 12}px` } : { left: `${point.x + 12}px` }} aria-hidden="true">
      <b>{placeOf(pair)}</b>
      <span><Mark verdict={pair.verdict} />{VERDICT_WORDS[pair.verdict]}{pair.diagnosis?.[0] ? `: ${kindWords(pair.diagnosis[0].kind)}` : ""}</span>
      <span class="dim">{Number.isFinite(error) ? `relative error ${short(error)}` : pair.reason}{pair.floor && Number.isFinite(error) ? `, floor ${short(pair.floor)}` : ""}</span>
    </div>
  );
}

/** What the picture says, for those who do not see it. */
function spoken(pairs: readonly Pair[], result: DiffResult): string {
  const first = result.first_divergence;
  return `Relative error of ${plural(pairs.length, "pair")} in order of execution. ` +
    (first ? `They part first at ${placeOf(first)}. ` : "They do not part. ") + "The list below has the same numbers.";
}

export function ErrorChart({ result, opened }: { result: DiffResult; opened: number | null }) {
  const { box, width, height } = useWidth<HTMLDivElement>();
  const canvas = useRef<HTMLCanvasElement>(null);
  const [over, setOver] = useState<Point | null>(null);
  const pairs = useMemo(() => charted(result.pairs), [result]);
  const scale = useMemo(() => (width > 0 && height > 0 ? scaleOf(pairs, width, height) : null), [pairs, width, height]);
  const shown = theme.value;
  useEffect(() => { // after the first sight: the list does not wait for the picture
    if (scale) drawChart(canvas.current!, scale, width, height, result.first_divergence?.index ?? null);
  }, [scale, shown, result]);

  const find = (event: MouseEvent) => scale && pointAt(scale, event.offsetX, event.offsetY);
  const open = (event: MouseEvent) => {
    const point = find(event);
    if (!point) return;
    moveTo(point.pair);
    openPair(point.pair.index);
  };
  const ring = over ?? scale?.points.find((point) => point.pair.index === opened) ?? null;
  return (
    <figure class="panel chart">
      <figcaption>
        <h2>Error through the layers</h2>
        <span class="legend">
          <span><Mark verdict="diverged" />diverged</span><span><Mark verdict="within" />within</span><span><Mark verdict="identical" />identical</span>
          {result.summary.errors > 0 && <span><Mark verdict="error" />not compared</span>}
          <span><i class="dash" />noise floor</span>
        </span>
      </figcaption>
      <div class="plot" ref={box}>
        <canvas ref={canvas} role="img" aria-label={spoken(pairs, result)}
          onMouseMove={(event) => setOver(find(event))} onMouseLeave={() => setOver(null)} onClick={open} />
        {ring && <span class="ring" style={{ transform: `translate(${ring.x}px, ${ring.y}px)` }} aria-hidden="true" />}
        {over && <Readout point={over} width={width} />}
      </div>
    </figure>
  );
}
