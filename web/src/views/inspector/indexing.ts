// Places in a tensor: coordinates, their row-major number, and slices as the server reads them (numpy's).

/** The row-major number of a place. */
export function flatOf(at: readonly number[], shape: readonly number[]): number {
  return shape.reduce((flat, size, axis) => flat * size + (at[axis] ?? 0), 0);
}

export function placeOf(flat: number, shape: readonly number[]): number[] {
  const at = shape.map(() => 0);
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    const size = shape[axis] || 1;
    at[axis] = flat % size;
    flat = Math.floor(flat / size);
  }
  return at;
}

export const elementCount = (shape: readonly number[]) => shape.reduce((all, size) => all * size, 1);

export const clip = (value: number, low: number, high: number) => Math.min(Math.max(value, low), Math.max(high, low));

/** Inside the shape, whole, and with as many numbers as there are axes. */
export const insideOf = (at: readonly number[], shape: readonly number[]) =>
  shape.map((size, axis) => clip(Math.trunc(at[axis] ?? 0) || 0, 0, size - 1));

/** `count` indices that include `at`, pushed back from the end of the axis so that none are missing. */
export interface Window {
  from: number;
  to: number;
}

export function windowOf(at: number, count: number, size: number): Window {
  const from = clip(at, 0, size - count);
  return { from, to: Math.min(from + count, size) };
}

/** A slice that keeps the axes of `kept` and fixes the others. */
export function sliceText(at: readonly number[], kept: ReadonlyMap<number, Window>): string {
  return at.map((index, axis) => {
    const range = kept.get(axis);
    return range ? `${range.from}:${range.to}` : String(index);
  }).join(",");
}

/** A slice that keeps some axes whole. */
export const viewText = (at: readonly number[], kept: readonly number[]) =>
  at.map((index, axis) => (kept.includes(axis) ? ":" : String(index))).join(",");
