// A slider and a number field for each dimension, the error along it above the slider. A click on a bar goes there.
import { useEffect, useRef } from "preact/hooks";
import { count, short } from "../../format";
import { theme } from "../../theme";
import { Field } from "../../ui/Field";
import { clip } from "./indexing";
import type { Look } from "./look";
import { drawStrip } from "./strip";

interface SliderProps {
  label: string;
  note?: string;
  size: number;
  value: number;
  onChange: (index: number) => void;
  /** The error at each index; null where the axis is too long to tell. */
  profile?: readonly number[] | null;
  profileTitle?: string;
}

function Strip({ profile, value, title, onChange }: { profile: readonly number[]; value: number; title: string; onChange: (index: number) => void }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const shade = theme.value;
  const indexAt = (event: MouseEvent) => {
    const box = canvas.current!.getBoundingClientRect();
    return clip(Math.floor(((event.clientX - box.left) / box.width) * profile.length), 0, profile.length - 1);
  };
  useEffect(() => {
    const strip = canvas.current!;
    const draw = () => drawStrip(strip, profile, value);
    draw();
    const watcher = new ResizeObserver(draw);
    watcher.observe(strip);
    return () => watcher.disconnect();
  }, [profile, value, shade]);
  // For the mouse only: with the keyboard, and for screen readers, the slider beneath does the same.
  return (
    <canvas class="strip" ref={canvas} aria-hidden="true" onClick={(event) => onChange(indexAt(event))}
      onPointerMove={(event) => {
        const index = indexAt(event);
        canvas.current!.title = `${title} at ${index}: ${short(profile[index] ?? 0)}`;
      }} />
  );
}

/** A slider's own keys: on the page some of them move through the list of pairs. */
function keepKeys(event: KeyboardEvent): void {
  if (/^(Arrow|Page|Home|End)/.test(event.key)) event.stopPropagation();
}

export function Slider({ label, note, size, value, onChange, profile, profileTitle = "rms difference" }: SliderProps) {
  const last = Math.max(size - 1, 0);
  const take = (text: string) => {
    const wanted = Number(text);
    if (text !== "" && Number.isFinite(wanted)) onChange(clip(Math.trunc(wanted), 0, last));
  };
  return (
    <div class="slider">
      <span class="slider-label">{label}<span class="dim"> of {count(size)}{note && <>, <b>{note}</b></>}</span></span>
      <div class="slider-track">
        {profile && profile.some((value) => value > 0) && <Strip profile={profile} value={value} title={profileTitle} onChange={onChange} />}
        <input type="range" min={0} max={last} step={1} value={value} disabled={last === 0} onInput={(event) => take(event.currentTarget.value)} onKeyDown={keepKeys} aria-label={label} />
      </div>
      <Field type="number" class="slider-number mono" min={0} max={last} step={1} value={value} onDone={take} aria-label={`${label}, index`} />
    </div>
  );
}

interface NumberFieldProps {
  label: string;
  value: number;
  most: number;
  onChange: (value: number) => void;
}

export function NumberField({ label, value, most, onChange }: NumberFieldProps) {
  return (
    <label class="number-field">
      {label}
      <Field type="number" class="mono" min={1} max={most} step={1} value={value} onDone={(text) => onChange(Number(text))} />
    </label>
  );
}

interface SlidersProps {
  look: Look;
  profile: readonly (readonly number[] | null)[] | null;
  profileTitle: string;
  /** What an axis is for in this view: "rows", "columns", "values". */
  noteOf: (axis: number) => string | undefined;
  /** Axes that the view shows whole have no slider. */
  hidden?: readonly number[];
}

export function Sliders({ look, profile, profileTitle, noteOf, hidden = [] }: SlidersProps) {
  const at = look.at.value;
  const shown = look.shape.map((_, axis) => axis).filter((axis) => !hidden.includes(axis));
  if (shown.length === 0) return null;
  return (
    <div class="sliders" role="group" aria-label="Place in the tensor">
      {shown.map((axis) => (
        <Slider key={axis} label={`axis ${axis}`} note={noteOf(axis)} size={look.shape[axis] ?? 0} value={at[axis] ?? 0}
          onChange={(index) => look.move(axis, index)} profile={profile?.[axis]} profileTitle={profileTitle} />
      ))}
    </div>
  );
}
