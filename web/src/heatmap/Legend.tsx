// The colour scale with its ends and middle, and fields to change the range.
import { useEffect, useRef } from "preact/hooks";
import { short } from "../format";
import { Field } from "../ui/Field";
import { css, infColour, mapSize, nanColour, placeOf, rampOf, type Scale } from "./colour";

interface Props {
  title: string;
  scale: Scale;
  isByHand: boolean;
  onRange: (range: { low: number; high: number } | null) => void;
}

/** Zero and powers of ten for bent scales, even steps for a linear one. */
function ticksOf(scale: Scale): number[] {
  const { low, high } = scale;
  if (scale.kind === "linear") return low < 0 && high > 0 ? [low, 0, high] : [low, (low + high) / 2, high];
  const most = Math.max(Math.abs(low), Math.abs(high)) || 1;
  const powers = [most, most / 100];
  if (scale.kind === "log") return [...powers, Math.exp(rampOf(scale).low)];
  return [...powers.map((p) => -p), 0, ...powers].filter((v) => v >= low && v <= high);
}

export function Legend({ title, scale, isByHand, onRange }: Props) {
  const bar = useRef<HTMLCanvasElement>(null);
  const ramp = rampOf(scale);
  useEffect(() => {
    const c = bar.current?.getContext("2d");
    const image = c?.createImageData(mapSize, 1);
    if (!c || !image) return;
    image.data.set(ramp.table);
    c.putImageData(image, 0, 0);
  }, [ramp.table]);
  const field = (name: "low" | "high") => (
    <Field type="number" step="any" class="mono" aria-label={`${title}: ${name === "low" ? "lowest" : "highest"} of the scale`} value={Number(scale[name].toPrecision(4))}
      onDone={(text) => {
        const wanted = { low: scale.low, high: scale.high, [name]: Number(text) };
        if (text !== "" && wanted.low < wanted.high) onRange(wanted);
      }} />
  );
  return (
    <div class="ramp" role="group" aria-label={`Colours of ${title}`}>
      <span>{title}</span>
      {field("low")}
      <div class="ramp-bar">
        <canvas ref={bar} width={mapSize} height={1} aria-hidden="true" />
        {ticksOf(scale).map((value) => (
          <span key={value} class="ramp-tick mono" style={{ left: `${placeOf(ramp, value) * 100}%`, transform: `translateX(${-placeOf(ramp, value) * 100}%)` }}>{short(value, 2)}</span>
        ))}
      </div>
      {field("high")}
      {isByHand && <button type="button" class="plain" onClick={() => onRange(null)}>reset</button>}
    </div>
  );
}

export function SpecialColours() {
  const special = [["NaN", nanColour], ["±Inf", infColour]] as const;
  return (
    <span class="special">
      {special.map(([name, rgb]) => <span key={name}><i style={{ background: css(rgb) }} />{name}</span>)}
    </span>
  );
}
