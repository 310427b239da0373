// The values at the place looked at: a row, a grid of two axes, or the flattened tensor.
import * as api from "../../api";
import type { Measure } from "./cell";
import { Grids } from "./Grids";
import { placeOf } from "./indexing";
import { useLatest } from "./latest";
import type { Look } from "./look";
import { Row } from "./Row";

interface Props {
  id: string;
  index: number;
  look: Look;
  measure: Measure;
}

/** Where the values are cut from: fixed when they are asked for, since the place moves on while they come. */
interface Cut {
  view: string;
  /** Coordinates of element i of the answer. */
  indexOf: (i: number) => number[];
}

function cutOf(look: Look): Cut {
  const { windows, isFlat } = look.slice.value;
  const at = look.at.value;
  const view = look.view.value;
  if (isFlat) {
    const from = windows.get(0)?.from ?? 0;
    return { view, indexOf: (i) => placeOf(from + i, look.shape) };
  }
  const kept = [...windows].sort(([p], [q]) => p - q);
  const sizes = kept.map(([, range]) => range.to - range.from);
  const indexOf = (i: number) => {
    const inside = placeOf(i, sizes);
    const place = [...at];
    kept.forEach(([axis, range], n) => (place[axis] = range.from + (inside[n] ?? 0)));
    return place;
  };
  return { view, indexOf };
}

export function Values({ id, index, look, measure }: Props) {
  const { text, isFlat } = look.slice.value;
  const cut = cutOf(look);
  const { data, error } = useLatest(look.size > 0 ? `${cut.view} ${text}` : null, async (signal) => ({
    ...cut,
    arrays: await api.values(id, index, isFlat ? { flat: text } : { slice: text }, signal),
  }));
  const at = look.at.value;
  if (look.size === 0) return <p class="empty-note">This tensor has no elements.</p>;
  if (error) return <p class="empty-note" role="alert">{error}</p>;
  if (!data) return <p class="empty-note" aria-busy="true">Loading…</p>;
  if (data.view === "2d" && look.shape.length >= 2) {
    return <Grids arrays={data.arrays} indexOf={data.indexOf} axes={look.axes.value} measure={measure} chosen={at.join(",")} onGo={(to) => look.goTo(to)} />;
  }
  return <Row arrays={data.arrays} indexOf={data.indexOf} measure={measure} chosen={at.join(",")} isFlat={data.view === "flat"} onGo={(to) => look.goTo(to)} />;
}
