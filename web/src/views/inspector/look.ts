// What of a pair is looked at: the place, the view and its axes, and how pictures are coloured. Signals, so that a
// slider that moves redraws the values and nothing else; and all of it in the address, a moment later.
import { computed, effect, signal, type Signal } from "@preact/signals";
import type { ScaleKind } from "../../heatmap/colour";
import { query, setQuery } from "../../router";
import { clip, elementCount, flatOf, insideOf, placeOf, sliceText, type Window, windowOf } from "./indexing";

export const views = ["1d", "2d", "flat", "heatmap", "spread", "mapping"] as const;
export type View = (typeof views)[number];

export interface Range {
  low: number;
  high: number;
}

export const defaultCount = 10;
export const mostInRow = 4096;
export const mostInGrid = 48;

/** Chromium stops counting changes of the address after some 20 a second; a slider makes more. */
const addressDelayMs = 250;

const keys = ["at", "count", "rows", "view", "axes", "fold", "scale", "reduce", "range", "drange", "ma", "mb"] as const;

const toRange = (text: string | null): Range | null => {
  const [low, high] = (text ?? "").split(",").map(Number);
  return low !== undefined && high !== undefined && low < high ? { low, high } : null;
};

const oneOf = <T extends string>(text: string | null, known: readonly T[], otherwise: T): T =>
  known.find((name) => name === text) ?? otherwise;

export class Look {
  readonly at: Signal<number[]>;
  readonly count = signal(defaultCount);
  readonly rows = signal(defaultCount);
  readonly view = signal<View>("1d");
  /** Rows and columns of the two-dimensional views. */
  readonly axes: Signal<[number, number]>;
  /** Width of the folded picture; 0 shows axes. */
  readonly fold = signal(0);
  readonly scale = signal<ScaleKind>("linear");
  /** The largest: one wrong element among a thousand must show from afar. */
  readonly reduce = signal<"mean" | "max">("max");
  /** Set by hand; null as the statistics suggest. */
  readonly range = signal<Range | null>(null);
  readonly differenceRange = signal<Range | null>(null);
  readonly mapA = signal<string | null>(null);
  readonly mapB = signal<string | null>(null);
  readonly size: number;
  private written = "";

  constructor(readonly shape: readonly number[], private readonly asReal = false) {
    this.size = elementCount(shape);
    this.at = signal(shape.map(() => 0));
    this.axes = signal(this.defaultAxes());
    this.read(query.peek());
  }

  readonly flat = computed(() => flatOf(this.at.value, this.shape));

  /** What the values on screen are cut from, and how the server is asked for it. */
  readonly slice = computed<{ text: string; isFlat: boolean; windows: Map<number, Window> }>(() => {
    const at = this.at.value;
    const view = this.view.value;
    if (view === "flat") {
      const range = windowOf(this.flat.value, this.count.value, this.size);
      return { text: `${range.from}:${range.to}`, isFlat: true, windows: new Map([[0, range]]) };
    }
    const windows = new Map<number, Window>();
    const keep = (axis: number, count: number) => windows.set(axis, windowOf(at[axis] ?? 0, count, this.shape[axis] ?? 1));
    if (view === "2d" && this.shape.length >= 2) {
      const [down, across] = this.axes.value;
      keep(down, this.rows.value);
      keep(across, Math.min(this.count.value, mostInGrid));
    } else if (this.shape.length > 0) {
      keep(this.shape.length - 1, this.count.value);
    }
    return { text: sliceText(at, windows), isFlat: false, windows };
  });

  move(axis: number, index: number): void {
    this.goTo(this.at.peek().map((was, i) => (i === axis ? index : was)));
  }

  goTo(at: readonly number[]): void {
    this.at.value = insideOf(at, this.shape);
  }

  goToFlat(flat: number): void {
    this.at.value = placeOf(clip(flat, 0, this.size - 1), this.shape);
  }

  setCount(count: number): void {
    this.count.value = clip(Math.trunc(count) || 1, 1, mostInRow);
  }

  setRows(rows: number): void {
    this.rows.value = clip(Math.trunc(rows) || 1, 1, mostInGrid);
  }

  setAxes(down: number, across: number): void {
    if (down !== across) this.axes.value = [down, across];
  }

  nextView(available: readonly View[]): void {
    this.view.value = available[(available.indexOf(this.view.value) + 1) % available.length] ?? "1d";
  }

  /** Keeps the address and the look together until the answer is called. */
  follow(): () => void {
    let timer = 0;
    const write = effect(() => {
      const text = this.toQuery();
      window.clearTimeout(timer);
      timer = window.setTimeout(() => {
        this.written = JSON.stringify(text);
        setQuery(text);
      }, addressDelayMs);
    });
    const read = effect(() => {
      const now = JSON.stringify(Object.fromEntries(keys.map((key) => [key, query.value.get(key)])));
      if (this.written && now !== this.written) this.read(query.value);
      this.written = now;
    });
    return () => {
      window.clearTimeout(timer);
      write();
      read();
    };
  }

  /** The last two; the parts of complex numbers are no side of a picture where there are others. */
  private defaultAxes(): [number, number] {
    const last = this.shape.length - (this.asReal && this.shape.length > 2 ? 2 : 1);
    return [Math.max(last - 1, 0), Math.max(last, 0)];
  }

  /** A long vector would be a hair line: it is folded into a square. */
  private defaultFold(): number {
    return this.shape.length === 1 && this.size > 1024 ? Math.round(Math.sqrt(this.size)) : 0;
  }

  private read(given: URLSearchParams): void {
    this.goTo((given.get("at") ?? "").split(",").map(Number));
    this.setCount(Number(given.get("count") ?? defaultCount));
    this.setRows(Number(given.get("rows") ?? defaultCount));
    this.view.value = oneOf(given.get("view"), views, "1d");
    const [down, across] = (given.get("axes") ?? "").split(",").map(Number);
    const isAxis = (axis: number | undefined): axis is number => axis !== undefined && axis in this.shape;
    this.axes.value = isAxis(down) && isAxis(across) && down !== across ? [down, across] : this.defaultAxes();
    this.fold.value = clip(Math.trunc(Number(given.get("fold") ?? this.defaultFold())) || 0, 0, this.size);
    this.scale.value = oneOf(given.get("scale"), ["linear", "symlog", "log"], "linear");
    this.reduce.value = oneOf(given.get("reduce"), ["mean", "max"], "max");
    this.range.value = toRange(given.get("range"));
    this.differenceRange.value = toRange(given.get("drange"));
    this.mapA.value = given.get("ma");
    this.mapB.value = given.get("mb");
  }

  private toQuery(): Record<(typeof keys)[number], string | null> {
    const unless = <T>(value: T, usual: T, text = String(value)) => (value === usual ? null : text);
    const range = (r: Range | null) => r && `${r.low},${r.high}`;
    const at = this.at.value.join(",");
    const axes = this.axes.value.join(",");
    return {
      at: unless(at, this.shape.map(() => 0).join(",")),
      count: unless(this.count.value, defaultCount),
      rows: unless(this.rows.value, defaultCount),
      view: unless<string>(this.view.value, "1d"),
      axes: unless(axes, this.defaultAxes().join(",")),
      fold: unless(this.fold.value, this.defaultFold()),
      scale: unless<string>(this.scale.value, "linear"),
      reduce: unless<string>(this.reduce.value, "max"),
      range: range(this.range.value),
      drange: range(this.differenceRange.value),
      ma: this.mapA.value,
      mb: this.mapB.value,
    };
  }
}
