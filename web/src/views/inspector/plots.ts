// The drawings of Spread.tsx, by hand on canvases: two stepped outlines, and one picture with a diagonal.
import { count, short } from "../../format";
import type { Density, Histogram } from "../../model";
import { colour } from "../../theme";
import { prepare } from "./strip";

/** Room around a plot for its numbers. */
export interface Frame {
  left: number;
  right: number;
  top: number;
  bottom: number;
}

const fontOf = () => `11px ${colour("--mono") || "monospace"}`;

const ruler = document.createElement("canvas").getContext("2d");
const gap = 5;

/** On the left as much as the longest number takes: a number cut off is another number. */
function frameFor(labels: readonly string[]): Frame {
  if (ruler) ruler.font = fontOf();
  const widest = labels.reduce((most, label) => Math.max(most, ruler?.measureText(label).width ?? 0), 0);
  return { left: Math.max(46, Math.ceil(widest) + 2 * gap), right: 8, top: 6, bottom: 20 };
}

const mostIn = (data: Histogram) => [...(data.a ?? []), ...(data.b ?? [])].reduce((top, n) => Math.max(top, n), 1);

export const histogramFrame = (data: Histogram) => frameFor([count(mostIn(data))]);
export const densityFrame = (data: Density) => frameFor([short(data.low), short(data.high)]);

function drawEnds(c: CanvasRenderingContext2D, frame: Frame, low: number, high: number, width: number, y: number): void {
  c.fillStyle = colour("--dim");
  c.font = fontOf();
  c.textBaseline = "top";
  for (const [value, align, x] of [[low, "left", frame.left], [(low + high) / 2, "center", frame.left + width / 2], [high, "right", frame.left + width]] as const) {
    c.textAlign = align;
    c.fillText(short(value), x, y + 4);
  }
}

export function drawHistogram(canvas: HTMLCanvasElement, data: Histogram, isLog: boolean, bin: number | null): void {
  const ready = prepare(canvas);
  if (!ready) return;
  const { c } = ready, frame = histogramFrame(data);
  const width = ready.width - frame.left - frame.right;
  const height = ready.height - frame.top - frame.bottom;
  const bend = (n: number) => (isLog ? Math.log1p(n) : n);
  const most = mostIn(data);
  const yOf = (n: number) => frame.top + height * (1 - bend(n) / bend(most));
  const step = width / Math.max(data.edges.length - 1, 1);
  if (bin !== null) {
    c.fillStyle = colour("--hover");
    c.fillRect(frame.left + bin * step, frame.top, step, height);
  }
  for (const [counts, token] of [[data.a, "--accent"], [data.b, "--bad-mark"]] as const) {
    if (!counts) continue;
    c.beginPath();
    c.moveTo(frame.left, frame.top + height);
    counts.forEach((n, i) => {
      c.lineTo(frame.left + i * step, yOf(n));
      c.lineTo(frame.left + (i + 1) * step, yOf(n));
    });
    c.lineTo(frame.left + width, frame.top + height);
    c.fillStyle = c.strokeStyle = colour(token);
    c.globalAlpha = 0.18;
    c.fill();
    c.globalAlpha = 1;
    c.lineWidth = 1.25;
    // B is dashed: where both agree, A is seen between.
    c.setLineDash(token === "--accent" ? [] : [4, 3]);
    c.stroke();
    c.setLineDash([]);
  }
  c.fillStyle = colour("--line");
  c.fillRect(frame.left, frame.top + height, width, 1);
  c.fillStyle = colour("--dim");
  c.font = fontOf();
  c.textAlign = "right";
  c.textBaseline = "top";
  c.fillText(count(most), frame.left - gap, frame.top);
  drawEnds(c, frame, data.edges[0] ?? 0, data.edges[data.edges.length - 1] ?? 1, width, frame.top + height);
}

/** The counts as an image of one pixel for each cell, B upwards. */
function densityImage(data: Density): HTMLCanvasElement {
  const image = document.createElement("canvas");
  image.width = image.height = data.size;
  const c = image.getContext("2d")!;
  c.fillStyle = colour("--accent");
  const most = Math.log1p(data.counts.reduce((top, n) => Math.max(top, n), 1));
  data.counts.forEach((n, i) => {
    if (n === 0) return;
    c.globalAlpha = 0.2 + 0.8 * (Math.log1p(n) / most);
    c.fillRect(i % data.size, data.size - 1 - Math.floor(i / data.size), 1, 1);
  });
  return image;
}

export function drawDensity(canvas: HTMLCanvasElement, data: Density): void {
  const ready = prepare(canvas);
  if (!ready) return;
  const { c } = ready, frame = densityFrame(data);
  const side = Math.min(ready.width - frame.left - frame.right, ready.height - frame.top - frame.bottom);
  c.strokeStyle = colour("--edge");
  c.lineWidth = 1;
  c.setLineDash([5, 4]);
  c.beginPath();
  c.moveTo(frame.left, frame.top + side);
  c.lineTo(frame.left + side, frame.top);
  c.stroke();
  c.setLineDash([]);
  c.imageSmoothingEnabled = false;
  c.drawImage(densityImage(data), frame.left, frame.top, side, side);
  c.strokeStyle = colour("--line");
  c.strokeRect(frame.left - 0.5, frame.top - 0.5, side + 1, side + 1);
  c.fillStyle = colour("--dim");
  c.font = fontOf();
  c.textAlign = "right";
  c.textBaseline = "top";
  c.fillText(short(data.high), frame.left - gap, frame.top);
  c.textBaseline = "middle";
  c.fillText("B", frame.left - gap, frame.top + side / 2);
  c.textBaseline = "bottom";
  c.fillText(short(data.low), frame.left - gap, frame.top + side);
  drawEnds(c, frame, data.low, data.high, side, frame.top + side);
}
