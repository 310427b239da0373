// The chart of errors on a canvas: ten thousand points are one picture, not ten thousand elements.
import type { Verdict } from "../../model";
import { colour } from "../../theme";
import { SHAPES } from "../../ui/Mark";
import type { Point, Scale } from "./chartScale";

/** Least important first: what diverged is drawn on top. */
const LAYERS: Verdict[] = ["identical", "within", "error", "diverged"];

const STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000];

const FILL: Record<string, string> = { within: "--ok-mark", diverged: "--bad-mark", error: "--error-mark" };

function drawFrame(g: CanvasRenderingContext2D, scale: Scale): void {
  g.fillStyle = colour("--band");
  scale.bands.forEach((band, at) => at % 2 === 1 && g.fillRect(band.from, scale.top, band.to - band.from, scale.bottom - scale.top));
  g.font = `11px ${colour("--sans")}`;
  g.lineWidth = 1;
  g.strokeStyle = colour("--line");
  g.fillStyle = colour("--dim");
  g.textAlign = "right";
  for (const tick of scale.ticks) {
    const y = Math.round(tick.y) + 0.5;
    g.beginPath();
    g.moveTo(scale.left, y);
    g.lineTo(scale.right, y);
    g.stroke();
    g.fillText(tick.label, scale.left - 7, y + 4);
  }
  drawLayers(g, scale);
}

/** As many layers are named as there is room for, in equal steps. */
function drawLayers(g: CanvasRenderingContext2D, scale: Scale): void {
  const labels = scale.bands.filter((band) => band.label).map((band) => {
    const text = band.to - band.from > 60 ? `layer ${band.label}` : band.label;
    return { text, center: (band.from + band.to) / 2, half: g.measureText(text).width / 2 };
  });
  const apart = (x: typeof labels[0] | undefined, y: typeof labels[0]) => !x || x.center + x.half + 8 <= y.center - y.half;
  const fits = (every: number) => labels.every((label, at) => at % every !== 0 || apart(labels[at - every], label));
  const every = STEPS.find(fits) ?? labels.length;
  g.textAlign = "center";
  labels.forEach(({ text, center }, at) => at % every === 0 && g.fillText(text, center, scale.bottom + 15));
}

function drawFloor(g: CanvasRenderingContext2D, scale: Scale): void {
  g.strokeStyle = colour("--floor");
  g.setLineDash([4, 3]);
  g.lineWidth = 1.25;
  g.beginPath();
  let drawing = false;
  for (const point of scale.points) {
    if (point.floorY === null) {
      drawing = false;
      continue;
    }
    g[drawing ? "lineTo" : "moveTo"](point.x - scale.step / 2, point.floorY);
    g.lineTo(point.x + scale.step / 2, point.floorY);
    drawing = true;
  }
  g.stroke();
  g.setLineDash([]);
}

function drawPoint(g: CanvasRenderingContext2D, point: Point, shape: Path2D, size: number, hollow: boolean): void {
  g.save();
  g.translate(point.x - size / 2, point.y - size / 2);
  g.scale(size / 10, size / 10);
  if (hollow) g.stroke(shape);
  else g.fill(shape);
  g.restore();
}

function drawPoints(g: CanvasRenderingContext2D, scale: Scale): void {
  const size = Math.min(10, Math.max(4, scale.step * 0.8));
  for (const verdict of LAYERS) {
    const shape = new Path2D(SHAPES[verdict]);
    const fill = FILL[verdict];
    g.fillStyle = colour(fill ?? "--panel");
    g.strokeStyle = colour("--same-mark");
    g.lineWidth = 2;
    for (const point of scale.points) if (point.pair.verdict === verdict) drawPoint(g, point, shape, size, fill === undefined);
  }
}

/** A line down to the point where the two part, and its name. */
function drawFirst(g: CanvasRenderingContext2D, scale: Scale, first: number): void {
  const point = scale.points.find((candidate) => candidate.pair.index === first);
  if (!point) return;
  g.strokeStyle = g.fillStyle = colour("--bad");
  g.lineWidth = 1;
  g.beginPath();
  g.moveTo(Math.round(point.x) + 0.5, scale.top - 14);
  g.lineTo(Math.round(point.x) + 0.5, point.y - 7);
  g.stroke();
  g.font = `600 11px ${colour("--sans")}`;
  const fits = point.x + 110 < scale.right;
  g.textAlign = fits ? "left" : "right";
  g.fillText("first divergence", point.x + (fits ? 5 : -5), scale.top - 6);
}

export function drawChart(canvas: HTMLCanvasElement, scale: Scale, width: number, height: number, first: number | null): void {
  const density = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * density);
  canvas.height = Math.round(height * density);
  const g = canvas.getContext("2d")!;
  g.scale(density, density);
  drawFrame(g, scale);
  drawFloor(g, scale);
  drawPoints(g, scale);
  if (first !== null) drawFirst(g, scale, first);
}
