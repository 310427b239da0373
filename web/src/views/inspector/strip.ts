// The bars above a slider: one for each index, or where there are more indices than pixels one for each pixel,
// with the largest of its indices.
import { colour } from "../../theme";

/** Sizes the drawing to the canvas on the page; gives the context scaled to the page's pixels. */
export function prepare(canvas: HTMLCanvasElement): { c: CanvasRenderingContext2D; width: number; height: number } | null {
  const c = canvas.getContext("2d");
  if (!c) return null;
  const ratio = window.devicePixelRatio || 1;
  const width = canvas.clientWidth;
  const height = canvas.clientHeight;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  c.setTransform(ratio, 0, 0, ratio, 0, 0);
  return { c, width, height };
}

export function drawStrip(canvas: HTMLCanvasElement, profile: readonly number[], current: number): void {
  const ready = prepare(canvas);
  if (!ready) return;
  const { c, width, height } = ready;
  const largest = profile.reduce((most, value) => Math.max(most, value), 0);
  const bars = Math.min(profile.length, Math.max(1, Math.floor(width)));
  const step = width / bars;
  const gap = step > 4 ? 1 : 0;
  const plain = colour("--ok-mark");
  const chosen = colour("--bad-mark");
  for (let bar = 0; bar < bars; bar++) {
    const from = Math.floor((bar * profile.length) / bars);
    const to = Math.max(from + 1, Math.floor(((bar + 1) * profile.length) / bars));
    let value = 0;
    for (let i = from; i < to; i++) value = Math.max(value, profile[i] ?? 0);
    const isChosen = current >= from && current < to;
    const high = largest > 0 ? Math.max(value > 0 ? 1 : 0, (value / largest) * (height - 2)) : 0;
    c.fillStyle = isChosen ? chosen : plain;
    c.fillRect(bar * step, height - Math.max(high, isChosen ? 2 : 0), Math.max(step - gap, 1), Math.max(high, isChosen ? 2 : 0));
  }
}
