// Which two axes of a tensor are the rows and the columns. Choosing the one that is taken swaps them.
import { count } from "../../format";
import type { Look } from "./look";

export function AxisChoice({ look }: { look: Look }) {
  const [down, across] = look.axes.value;
  const choose = (label: string, value: number, set: (axis: number) => void) => (
    <label>{label}
      <select aria-label={label} value={String(value)} onChange={(event) => set(Number(event.currentTarget.value))}>
        {look.shape.map((size, axis) => <option key={axis} value={String(axis)}>axis {axis} ({count(size)})</option>)}
      </select>
    </label>
  );
  return (
    <>
      {choose("rows", down, (axis) => look.setAxes(axis, axis === across ? down : across))}
      {choose("columns", across, (axis) => look.setAxes(axis === down ? across : down, axis))}
    </>
  );
}
