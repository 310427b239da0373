// Which lies over the colours: frames, titles, the numbers of rows and columns, the cursor in all panes at
// once, and the values themselves where cells are large enough to hold them.
import { short } from "../format";
import type { Which } from "../model";
import { type Camera, placeOfElement } from "./camera";
import { colourOf, type Ramp } from "./colour";
import type { Pane } from "./painter";
import type { Spot } from "./picture";
import type { Plane } from "./tiles";

export interface Theme {
  ink: string;
  dim: string;
  line: string;
  font: string;
}

export interface Overlay {
  ratio: number;
  panes: Pane[];
  plane: Plane;
  camera: Camera;
  cursor: Spot | null;
  theme: Theme;
  ramps: Record<Which, Ramp>;
  /** Panes that have nothing to show yet. */
  waiting: ReadonlySet<Which>;
  valueAt: (what: Which, spot: Spot) => number | null;
}

const titles: Record<Which, string> = { a: "A", b: "B", difference: "B − A" };

/** Cells at least this wide hold "-0.123". */
const numberScale = 46;

export function drawOverlay(canvas: HTMLCanvasElement, o: Overlay): void {
  const c = canvas.getContext("2d");
  if (!c) return;
  c.setTransform(o.ratio, 0, 0, o.ratio, 0, 0);
  c.clearRect(0, 0, canvas.width, canvas.height);
  o.panes.forEach((pane, i) => {
    const what = o.plane.whats[i];
    if (!what) return;
    drawFrame(c, o, pane, o.plane.whats.length > 1 ? titles[what] : "");
    if (o.waiting.has(what)) drawWaiting(c, o, pane);
    drawTicks(c, o, pane, pane.left === o.panes[0]?.left);
    c.save();
    c.beginPath();
    c.rect(pane.left, pane.top, pane.width, pane.height);
    c.clip();
    if (o.camera.scale >= numberScale) drawNumbers(c, o, pane, what);
    if (o.cursor) drawCursor(c, o, pane, o.cursor);
    c.restore();
  });
}

function drawFrame(c: CanvasRenderingContext2D, o: Overlay, pane: Pane, title: string): void {
  c.strokeStyle = o.theme.line;
  c.lineWidth = 1;
  c.strokeRect(pane.left - 0.5, pane.top - 0.5, pane.width + 1, pane.height + 1);
  c.fillStyle = o.theme.ink;
  c.font = `600 12px ${o.theme.font}`;
  c.textAlign = "left";
  c.textBaseline = "alphabetic";
  c.fillText(title, pane.left, pane.top - 6);
}

function drawWaiting(c: CanvasRenderingContext2D, o: Overlay, pane: Pane): void {
  c.fillStyle = o.theme.dim;
  c.font = `12px ${o.theme.font}`;
  c.textAlign = "center";
  c.textBaseline = "middle";
  c.fillText("loading…", pane.left + pane.width / 2, pane.top + pane.height / 2);
}

/** Round steps, at least `room` pixels apart. */
function tickStep(scale: number, room: number): number {
  const least = room / scale;
  let step = 1;
  while (step < least) step *= String(step).startsWith("2") ? 2.5 : 2;
  return step;
}

function drawTicks(c: CanvasRenderingContext2D, o: Overlay, pane: Pane, withRows: boolean): void {
  const { camera, plane } = o;
  c.fillStyle = o.theme.dim;
  c.font = `11px ${o.theme.font}`;
  const cell = camera.scale > 12 ? camera.scale / 2 : 0;
  const eachOf = (size: number, middle: number, seen: number, room: number, draw: (at: number) => void) => {
    const step = tickStep(camera.scale, room);
    const half = seen / camera.scale / 2;
    for (let at = Math.max(0, Math.floor((middle - half) / step) * step); at < Math.min(size, middle + half); at += step) draw(at);
  };
  c.textAlign = "center";
  c.textBaseline = "top";
  eachOf(plane.columns, camera.x, pane.width, 64, (at) => {
    const x = placeOfElement(camera, 0, at, pane).px + cell;
    if (x >= 6 && x <= pane.width - 14) c.fillText(String(at), pane.left + x, pane.top + pane.height + 3);
  });
  if (!withRows) return;
  c.textAlign = "right";
  c.textBaseline = "middle";
  eachOf(plane.rows, camera.y, pane.height, 28, (at) => {
    const y = placeOfElement(camera, at, 0, pane).py + cell;
    if (y >= 0 && y <= pane.height) c.fillText(String(at), pane.left - 5, pane.top + y);
  });
}

function drawNumbers(c: CanvasRenderingContext2D, o: Overlay, pane: Pane, what: Which): void {
  const { camera, plane } = o;
  const across = pane.width / camera.scale / 2;
  const along = pane.height / camera.scale / 2;
  c.font = `11px ${o.theme.font}`;
  c.textAlign = "center";
  c.textBaseline = "middle";
  for (let row = Math.max(0, Math.floor(camera.y - along)); row < Math.min(plane.rows, camera.y + along); row++) {
    for (let column = Math.max(0, Math.floor(camera.x - across)); column < Math.min(plane.columns, camera.x + across); column++) {
      const value = o.valueAt(what, { row, column });
      if (value === null) continue;
      const [r, g, b] = colourOf(o.ramps[what], value);
      c.fillStyle = 0.299 * r + 0.587 * g + 0.114 * b > 140 ? "#14181c" : "#ffffff"; // on the cell, not on the page
      const { px, py } = placeOfElement(camera, row + 0.5, column + 0.5, pane);
      c.fillText(Number.isNaN(value) ? "NaN" : short(value, o.camera.scale < 64 ? 2 : 3), pane.left + px, pane.top + py);
    }
  }
}

function drawCursor(c: CanvasRenderingContext2D, o: Overlay, pane: Pane, cursor: Spot): void {
  const { px, py } = placeOfElement(o.camera, cursor.row, cursor.column, pane);
  const size = Math.max(o.camera.scale, 7);
  const shift = (size - o.camera.scale) / 2;
  const box: [number, number, number, number] = [pane.left + px - shift, pane.top + py - shift, size, size];
  // White within black is seen on every colour.
  c.lineWidth = 3;
  c.strokeStyle = "#000000";
  c.strokeRect(...box);
  c.lineWidth = 1.5;
  c.strokeStyle = "#ffffff";
  c.strokeRect(...box);
}
