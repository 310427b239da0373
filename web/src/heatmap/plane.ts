// The matrix that a heatmap shows: two axes of the tensor at the place looked at, or the flattened tensor folded
// into rows; and the way between its cells and places in the tensor.
import * as api from "../api";
import type { PairDetail, Which } from "../model";
import { flatOf, placeOf, viewText } from "../views/inspector/indexing";
import type { Look } from "../views/inspector/look";
import type { Spot } from "./picture";
import type { Plane } from "./tiles";

export interface Shown {
  plane: Plane;
  /** Axes that need no slider, since the picture shows them whole. */
  axes: number[];
  placeOf: (spot: Spot) => number[];
  spotOf: (at: readonly number[]) => Spot;
}

const whatsOf = (detail: PairDetail): Which[] => (detail.a && detail.b ? ["a", "b", "difference"] : [detail.a ? "a" : "b"]);

export function planeOf(id: string, detail: PairDetail, look: Look): Shown {
  const whats = whatsOf(detail);
  const reduce = look.reduce.value;
  const at = look.at.value;
  const { shape, fold } = look;
  const make = (view: string, rows: number, columns: number, more: { width?: number; transpose?: 1 }, lastColumns = columns): Plane => ({
    id: `${detail.index} ${view} ${more.width ?? 0} ${more.transpose ?? 0} ${reduce}`,
    rows,
    columns,
    lastColumns,
    whats,
    load: (tile, signal) => api.tile(id, detail.index, { ...tile, view, ...more, reduce }, signal),
  });
  if (fold.value > 0) {
    const width = fold.value;
    const rows = Math.ceil(look.size / width);
    return {
      plane: make("flat", rows, width, { width }, look.size - (rows - 1) * width),
      axes: shape.map((_, axis) => axis),
      placeOf: ({ row, column }) => placeOf(Math.min(row * width + column, look.size - 1), shape),
      spotOf: (place) => ({ row: Math.floor(flatOf(place, shape) / width), column: flatOf(place, shape) % width }),
    };
  }
  const [down, across] = shape.length >= 2 ? look.axes.value : [-1, 0];
  const axes = [down, across].filter((axis) => axis >= 0);
  return {
    plane: make(viewText(at, axes), shape[down] ?? 1, shape[across] ?? 1, down > across ? { transpose: 1 } : {}),
    axes,
    placeOf: ({ row, column }) => at.map((index, axis) => (axis === down ? row : axis === across ? column : index)),
    spotOf: (place) => ({ row: place[down] ?? 0, column: place[across] ?? 0 }),
  };
}
