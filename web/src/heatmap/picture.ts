// The panes of a heatmap: A, B and B - A under one camera, with what is drawn over them.
//
// Lives outside the component tree: it is drawn at most once a frame, whatever moves. Under it lies a WebGL
// canvas with the values, over it a plain one with titles, ticks, cursor and numbers. Dragging pans, the wheel or
// two fingers zoom, the arrows move the cursor; what the cursor is on is told to the owner.
import type { Which } from "../model";
import { type Camera, confine, elementAt, type Extent, fit, placeOfElement, zoomAt } from "./camera";
import type { Ramp } from "./colour";
import { Gestures } from "./gestures";
import { drawOverlay, type Theme } from "./overlay";
import { type Pane, Painter } from "./painter";
import { columnsOf, holds, levelFor, type Place, type Plane, type Tile, TileStore, tilesInView, tileSide, topLevel } from "./tiles";

export interface Spot {
  row: number;
  column: number;
}

export interface PictureEvents {
  onCursor: (spot: Spot | null) => void;
  onPick: (spot: Spot) => void;
  onError: (error: unknown) => void;
}

/** Room for row numbers on the left, for the title above and column numbers below. */
export const margin = { left: 46, top: 20, bottom: 16, gap: 10 };

/** Panes stand one above the other when the matrix is this much wider than high. */
const stackedFrom = 4;

export class Picture {
  private readonly painter: Painter;
  private readonly store: TileStore;
  private readonly gestures: Gestures;
  private readonly watcher: ResizeObserver;
  private plane: Plane | null = null;
  private before: Plane | null = null; // shown until the first tile of the new plane is here
  private camera: Camera = { x: 0, y: 0, scale: 1 };
  private ramps: Record<Which, Ramp> | null = null;
  private cursor: Spot | null = null;
  private frame = 0;
  private ratio = 1;
  private size: Extent = { width: 0, height: 0 };

  /** Throws where WebGL2 is missing. */
  constructor(
    private readonly host: HTMLElement,
    private readonly below: HTMLCanvasElement,
    private readonly above: HTMLCanvasElement,
    private readonly theme: () => Theme,
    private readonly events: PictureEvents,
  ) {
    this.painter = new Painter(below);
    this.store = new TileStore(() => this.redraw(), (tile) => this.painter.drop(tile), events.onError);
    this.gestures = new Gestures(host, {
      pan: (dx, dy) => this.move({ ...this.camera, x: this.camera.x - dx / this.camera.scale, y: this.camera.y - dy / this.camera.scale }),
      zoom: (px, py, factor) => this.zoomUnder(px, py, factor),
      hover: (px, py) => this.point(px, py),
      leave: () => this.setCursor(null),
      pick: (px, py) => this.pick(px, py),
      key: (name, shift) => this.key(name, shift),
    });
    this.watcher = new ResizeObserver(() => this.resize());
    this.watcher.observe(host);
    this.resize();
  }

  show(plane: Plane, ramps: Record<Which, Ramp>): void {
    const isOther = this.plane?.id !== plane.id;
    const isOtherSize = !this.plane || this.plane.rows !== plane.rows || this.plane.columns !== plane.columns;
    if (isOther) this.before = this.plane;
    this.plane = plane;
    this.ramps = ramps;
    if (isOtherSize) {
      this.before = null;
      this.resize(true);
    }
    this.redraw();
  }

  fit(): void {
    const pane = this.panes()[0];
    if (this.plane && pane) this.move(fit(this.extent(), pane));
  }

  /** By the keys and buttons: around the cursor when there is one, else around the middle. */
  zoom(factor: number): void {
    const pane = this.panes()[0];
    if (!pane) return;
    const at = this.cursor ? placeOfElement(this.camera, this.cursor.row + 0.5, this.cursor.column + 0.5, pane)
      : { px: pane.width / 2, py: pane.height / 2 };
    this.move(zoomAt(this.camera, at.px, at.py, factor, pane));
  }

  /** Brings an element into the middle, large enough to be told from its neighbours. */
  goTo(spot: Spot): void {
    this.cursor = spot;
    this.move({ x: spot.column + 0.5, y: spot.row + 0.5, scale: Math.max(this.camera.scale, 12) });
  }

  /** The value under the cursor, where a tile of single elements is here. */
  valueAt(what: Which, spot: Spot): number | null {
    if (!this.plane || !holds(this.plane, spot.row, spot.column)) return null;
    const [x, y] = [Math.floor(spot.column / tileSide), Math.floor(spot.row / tileSide)];
    const tile = this.store.find(this.plane.id, { what, level: 0, x, y });
    return tile?.values[(spot.row % tileSide) * tile.columns + (spot.column % tileSide)] ?? null;
  }

  redraw(): void {
    if (!this.frame) this.frame = requestAnimationFrame(() => this.draw());
  }

  release(): void {
    cancelAnimationFrame(this.frame);
    this.watcher.disconnect();
    this.gestures.release();
    this.store.clear();
    this.painter.release();
  }

  private extent(): Extent {
    return { width: this.plane?.columns ?? 0, height: this.plane?.rows ?? 0 };
  }

  /** Side by side; one above the other when the matrix is much wider than high. */
  private panes(): Pane[] {
    const count = this.plane?.whats.length ?? 1;
    const { columns = 1, rows = 1 } = this.plane ?? {};
    const isStacked = columns > stackedFrom * rows;
    const across = isStacked ? 1 : count;
    const down = isStacked ? count : 1;
    const width = Math.max(1, Math.floor((this.size.width - margin.left - (across - 1) * margin.gap) / across));
    const height = Math.max(1, Math.floor(this.size.height / down) - margin.top - margin.bottom);
    return Array.from({ length: count }, (_, i) => ({
      left: margin.left + (isStacked ? 0 : i * (width + margin.gap)),
      top: margin.top + (isStacked ? i * (height + margin.top + margin.bottom) : 0),
      width,
      height,
    }));
  }

  private move(camera: Camera): void {
    const pane = this.panes()[0];
    if (pane) this.camera = confine(camera, this.extent(), pane);
    this.redraw();
  }

  private paneAt(px: number, py: number): { pane: Pane; x: number; y: number } | null {
    for (const pane of this.panes()) {
      const x = px - pane.left;
      const y = py - pane.top;
      if (x >= 0 && y >= 0 && x < pane.width && y < pane.height) return { pane, x, y };
    }
    return null;
  }

  private spotAt(px: number, py: number): Spot | null {
    const hit = this.paneAt(px, py);
    if (!hit || !this.plane) return null;
    const spot = elementAt(this.camera, hit.x, hit.y, hit.pane);
    return holds(this.plane, spot.row, spot.column) ? spot : null;
  }

  private zoomUnder(px: number, py: number, factor: number): void {
    const hit = this.paneAt(px, py);
    if (hit) this.move(zoomAt(this.camera, hit.x, hit.y, factor, hit.pane));
  }

  private point(px: number, py: number): void {
    this.setCursor(this.spotAt(px, py));
  }

  private pick(px: number, py: number): void {
    const spot = this.spotAt(px, py);
    if (spot) this.events.onPick(spot);
  }

  private setCursor(spot: Spot | null): void {
    if (spot?.row === this.cursor?.row && spot?.column === this.cursor?.column) return;
    this.cursor = spot;
    this.events.onCursor(spot);
    this.redraw();
  }

  /** True when the key was ours. */
  private key(name: string, shift: boolean): boolean {
    const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[name];
    if (step) this.step(step[0] ?? 0, step[1] ?? 0, shift ? 10 : 1);
    else if (name === "+" || name === "=") this.zoom(1.5);
    else if (name === "-" || name === "_") this.zoom(1 / 1.5);
    else if (name === "0") this.fit();
    else if (name === "Enter" && this.cursor) this.events.onPick(this.cursor);
    else return false;
    return true;
  }

  /** Moves the cursor by cells as they are seen, and the view after it. */
  private step(down: number, right: number, times: number): void {
    const { plane } = this;
    const pane = this.panes()[0];
    if (!plane || !pane) return;
    const by = Math.max(1, Math.round(4 / this.camera.scale)) * times;
    const from = this.cursor ?? { row: Math.floor(this.camera.y) - down, column: Math.floor(this.camera.x) - right };
    const clip = (at: number, size: number) => Math.min(Math.max(at, 0), size - 1);
    const row = clip(from.row + down * by, plane.rows);
    this.setCursor({ row, column: clip(from.column + right * by, columnsOf(plane, row)) });
    this.follow(pane);
  }

  private follow(pane: Pane): void {
    if (!this.cursor) return;
    const { px, py } = placeOfElement(this.camera, this.cursor.row + 0.5, this.cursor.column + 0.5, pane);
    const past = (at: number, room: number) => (at < 0 ? at : at > room ? at - room : 0);
    const dx = past(px, pane.width);
    const dy = past(py, pane.height);
    if (dx || dy) this.move({ ...this.camera, x: this.camera.x + dx / this.camera.scale, y: this.camera.y + dy / this.camera.scale });
  }

  /** As high as the panes need at this width, between a few rows and most of the window. */
  private setHeight(): void {
    if (!this.plane) return;
    const { rows, columns, whats } = this.plane;
    const isStacked = columns > stackedFrom * rows;
    const across = isStacked ? 1 : whats.length;
    const paneWidth = (this.host.clientWidth - margin.left - (across - 1) * margin.gap) / across;
    const needed = (paneWidth * rows) / columns + margin.top + margin.bottom;
    const most = Math.max(window.innerHeight * 0.62, 280);
    this.host.style.height = `${Math.round(Math.min(Math.max(needed * (isStacked ? whats.length : 1), 180), most))}px`;
  }

  private resize(isOtherPlane = false): void {
    this.setHeight();
    this.ratio = window.devicePixelRatio || 1;
    const keepsPlace = this.size.width > 0 && !isOtherPlane;
    this.size = { width: this.host.clientWidth, height: this.host.clientHeight };
    for (const canvas of [this.below, this.above]) {
      canvas.width = Math.round(this.size.width * this.ratio);
      canvas.height = Math.round(this.size.height * this.ratio);
    }
    if (keepsPlace) this.move(this.camera);
    else this.fit();
    this.draw(); // at once: a canvas that changed its size is empty until it is drawn
  }

  /** The coarsest level of every pane first, then the level that suits the zoom. */
  private wanted(plane: Plane, pane: Pane, level: number): Place[] {
    const places: Place[] = [];
    const top = topLevel(plane);
    for (const at of top === level ? [top] : [top, level]) {
      for (const { x, y } of tilesInView(plane, at, this.camera, pane)) {
        for (const what of plane.whats) places.push({ what, level: at, x, y });
      }
    }
    return places;
  }

  private here(plane: Plane, what: Which, pane: Pane, level: number): Tile[] {
    const tiles: Tile[] = [];
    for (let at = topLevel(plane); at >= level; at--) {
      for (const { x, y } of tilesInView(plane, at, this.camera, pane)) {
        const tile = this.store.find(plane.id, { what, level: at, x, y });
        if (tile) tiles.push(tile);
      }
    }
    return tiles;
  }

  private draw(): void {
    this.frame = 0;
    this.painter.clear();
    const { plane, ramps } = this;
    const panes = this.panes();
    const first = panes[0];
    if (!plane || !ramps || !first || plane.rows * plane.columns === 0) return;
    const level = levelFor(this.camera, plane, this.ratio);
    this.store.want(plane, this.wanted(plane, first, level));
    const waiting = new Set<Which>();
    plane.whats.forEach((what, i) => {
      const pane = panes[i];
      if (!pane) return;
      let tiles = this.here(plane, what, pane, level);
      if (tiles.length === 0 && this.before) tiles = this.here(this.before, what, pane, level);
      if (tiles.length === 0) waiting.add(what);
      this.painter.draw(pane, this.ratio, plane, this.camera, ramps[what], tiles);
    });
    drawOverlay(this.above, {
      ratio: this.ratio, panes, plane, camera: this.camera, cursor: this.cursor, theme: this.theme(),
      ramps, waiting, valueAt: (what, spot) => this.valueAt(what, spot),
    });
    this.host.dataset["busy"] = String(this.store.busy);
    this.host.dataset["level"] = String(level);
  }
}
