// The tiles of a picture: which are needed, which are here, which are on their way.
//
// A plane is one matrix cut from the tensor; at level L a cell of a tile covers 2^L x 2^L elements. Asked for what
// is in view, the store fetches the coarsest level first, so that something is always there to show, and
// cancels what has left the view. Tiles are kept until there are too many; the one unused longest goes.
import type { Tile as TileData, Which } from "../model";
import type { Camera, Extent } from "./camera";

export interface Place {
  what: Which;
  level: number;
  x: number;
  y: number;
}

export interface Plane {
  id: string; // equal for equal pictures: names the tiles
  rows: number;
  columns: number;
  lastColumns: number; // of the last row: fewer where a folded tensor ends before its row does
  whats: Which[];
  load: (place: Place, signal: AbortSignal) => Promise<TileData>;
}

export interface Tile extends Place, TileData {
  plane: string;
}

export const tileSide = 256;

/** 256 KiB each: at most 96 MiB of values, and as much on the graphics card. */
const mostTiles = 384;
/** As many as a browser opens connections to one host, less one for the values beside the picture. */
const mostRequests = 5;

export const columnsOf = (plane: Plane, row: number) => (row === plane.rows - 1 ? plane.lastColumns : plane.columns);

/** Whether there is an element. */
export const holds = (plane: Plane, row: number, column: number) =>
  row >= 0 && row < plane.rows && column >= 0 && column < columnsOf(plane, row);

export function topLevel(plane: Plane): number {
  const longest = Math.max(plane.rows, plane.columns, 1);
  return Math.max(0, Math.ceil(Math.log2(longest / tileSide)));
}

/** The level whose cells are one to two device pixels wide. */
export function levelFor(camera: Camera, plane: Plane, pixelRatio: number): number {
  const elementsPerPixel = 1 / (camera.scale * pixelRatio);
  return Math.min(Math.max(Math.ceil(Math.log2(elementsPerPixel) - 1e-6), 0), topLevel(plane));
}

/** The tiles of one level that a pane shows, nearest to the middle first. */
export function tilesInView(plane: Plane, level: number, camera: Camera, pane: Extent): { x: number; y: number }[] {
  const side = tileSide * 2 ** level;
  const range = (middle: number, room: number, size: number): [number, number] => {
    const half = room / camera.scale / 2;
    const last = Math.ceil(size / side) - 1;
    return [Math.max(0, Math.floor((middle - half) / side)), Math.min(last, Math.floor((middle + half) / side))];
  };
  const [left, right] = range(camera.x, pane.width, plane.columns);
  const [top, bottom] = range(camera.y, pane.height, plane.rows);
  const found: { x: number; y: number; far: number }[] = [];
  for (let y = top; y <= bottom; y++) {
    for (let x = left; x <= right; x++) {
      found.push({ x, y, far: Math.hypot((x + 0.5) * side - camera.x, (y + 0.5) * side - camera.y) });
    }
  }
  return found.sort((p, q) => p.far - q.far);
}

function keyOf(plane: string, place: Place): string {
  return `${plane} ${place.what} ${place.level} ${place.x} ${place.y}`;
}

export class TileStore {
  private tiles = new Map<string, Tile>();
  private running = new Map<string, AbortController>();
  private failed = new Set<string>();
  private waiting: { key: string; plane: Plane; place: Place }[] = [];

  constructor(
    private readonly onTile: () => void,
    private readonly onDrop: (tile: Tile) => void,
    private readonly onError: (error: unknown) => void,
  ) {}

  find(plane: string, place: Place): Tile | undefined {
    return this.tiles.get(keyOf(plane, place));
  }

  /** Everything that should be here, the most urgent first. What is on its way and not in the list is cancelled. */
  want(plane: Plane, places: Place[]): void {
    const wanted = new Map(places.map((place) => [keyOf(plane.id, place), place]));
    for (const [key, abort] of this.running) {
      if (!wanted.has(key)) {
        this.running.delete(key);
        abort.abort();
      }
    }
    this.waiting = [];
    for (const [key, place] of wanted) {
      const tile = this.tiles.get(key);
      if (tile) {
        this.tiles.delete(key);
        this.tiles.set(key, tile); // used: to the end of the line of those that go
      } else if (!this.running.has(key) && !this.failed.has(key)) {
        this.waiting.push({ key, plane, place });
      }
    }
    this.start();
  }

  get busy(): boolean {
    return this.running.size > 0 || this.waiting.length > 0;
  }

  clear(): void {
    for (const abort of this.running.values()) abort.abort();
    for (const tile of this.tiles.values()) this.onDrop(tile);
    this.running.clear();
    this.tiles.clear();
    this.waiting = [];
  }

  private start(): void {
    while (this.running.size < mostRequests) {
      const next = this.waiting.shift();
      if (!next) return;
      void this.fetch(next.key, next.plane, next.place);
    }
  }

  private async fetch(key: string, plane: Plane, place: Place): Promise<void> {
    const abort = new AbortController();
    this.running.set(key, abort);
    try {
      const data = await plane.load(place, abort.signal);
      if (abort.signal.aborted) return;
      this.tiles.set(key, { ...place, ...data, plane: plane.id });
      this.trim();
    } catch (error) {
      if (abort.signal.aborted) return;
      this.failed.add(key);
      this.onError(error);
    }
    if (this.running.get(key) === abort) this.running.delete(key);
    this.start();
    this.onTile();
  }

  private trim(): void {
    for (const [key, tile] of this.tiles) {
      if (this.tiles.size <= mostTiles) return;
      this.tiles.delete(key);
      this.onDrop(tile);
    }
  }
}
