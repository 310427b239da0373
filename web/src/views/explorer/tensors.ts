// The tensors of an input as the list shows them: filtered by text, sorted by a column.
import { number } from "../../format";
import type { ExploreResult, TensorStats } from "../../model";

export const columns = ["name", "dtype", "shape", "count", "mean", "std", "min", "max", "nan"] as const;
export type Column = (typeof columns)[number];

export const columnNames: Record<Column, string> = {
  name: "Name", dtype: "Type", shape: "Shape", count: "Values", mean: "Mean", std: "Std", min: "Min", max: "Max", nan: "NaN, Inf",
};

export interface Sorting {
  column: Column;
  isDown: boolean;
}

export interface Entry {
  tensor: TensorStats;
  /** Its index in the result, which is that of its address. */
  index: number;
}

/** "std", or "-std" for the largest first; null is the order of the file. */
export function parseSorting(text: string | null): Sorting | null {
  const column = columns.find((name) => name === text?.replace(/^-/, ""));
  return column ? { column, isDown: text?.startsWith("-") ?? false } : null;
}

const bad = (tensor: TensorStats) => tensor.nan + tensor.inf;

function compare(column: Column, p: TensorStats, q: TensorStats): number {
  if (column === "name" || column === "dtype") return p[column].localeCompare(q[column], "en", { numeric: true });
  if (column === "shape") return p.shape.length - q.shape.length || p.count - q.count;
  if (column === "nan") return bad(p) - bad(q);
  return number(p[column]) - number(q[column]);
}

export function entriesOf(result: ExploreResult, text: string, sorting: Sorting | null): Entry[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const entries = result.tensors.map((tensor, index) => ({ tensor, index })).filter(({ tensor }) => {
    const searched = `${tensor.name} ${tensor.dtype} [${tensor.shape.join(", ")}]`.toLowerCase();
    return words.every((word) => searched.includes(word));
  });
  if (!sorting) return entries;
  const sign = sorting.isDown ? -1 : 1;
  return entries.sort((p, q) => sign * compare(sorting.column, p.tensor, q.tensor) || p.index - q.index);
}
