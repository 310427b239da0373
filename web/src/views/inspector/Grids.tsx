// Two axes of the tensor as a grid, one for each side and one for their difference, with row and column numbers.
import { useRef } from "preact/hooks";
import type { Values, Which } from "../../model";
import { cellClass, cellText, depthOf, differenceOf } from "./cell";
import type { CutProps } from "./Row";
import { cellLabel, Tip, useTips } from "./Tip";

const titles: Record<Which, string> = { a: "A", b: "B", difference: "B − A" };

interface GridProps extends CutProps {
  which: Which;
  axes: readonly [number, number];
}

/** The arrays are in the order of the tensor's axes; rows of the grid may be the later one. */
function cellsOf(arrays: Values, axes: readonly [number, number]) {
  const [first = 0, second = 0] = arrays.shape;
  const isTurned = axes[0] > axes[1];
  const rows = isTurned ? second : first;
  const columns = isTurned ? first : second;
  const at = (row: number, column: number) => (isTurned ? column * second + row : row * second + column);
  return { rows, columns, at };
}

function Grid({ which, arrays, indexOf, axes, measure, chosen, onGo }: GridProps) {
  const table = useRef<HTMLTableElement>(null);
  const { rows, columns, at } = cellsOf(arrays, axes);
  const { target, handlers } = useTips(table, () => columns);
  const values = arrays[which];
  if (!values) return null;
  // Differences are seldom near the values in size: they have a depth of their own.
  const largest = which === "difference" ? measure.largestDifference : measure.largest;
  return (
    <figure class="matrix">
      <figcaption>{titles[which]}</figcaption>
      <div class="matrix-scroll">
        <table ref={table} class="mono" aria-label={titles[which]} {...handlers}>
          <thead>
            <tr>
              <th scope="col"><span class="sr-only">axis {axes[0]} \ axis {axes[1]}</span></th>
              {Array.from({ length: columns }, (_, c) => <th key={c} scope="col">{indexOf(at(0, c))[axes[1]]}</th>)}
            </tr>
          </thead>
          <tbody>
            {Array.from({ length: rows }, (_, r) => (
              <tr key={r}>
                <th scope="row">{indexOf(at(r, 0))[axes[0]]}</th>
                {Array.from({ length: columns }, (__, c) => {
                  const i = at(r, c);
                  const index = indexOf(i);
                  const value = values[i] ?? NaN;
                  const difference = differenceOf(measure, arrays.a?.[i], arrays.b?.[i], arrays.difference?.[i]);
                  const isChosen = index.join(",") === chosen;
                  return (
                    <td key={c} data-i={i} tabIndex={r + c === 0 ? 0 : -1} aria-label={cellLabel(arrays, index, i)}
                      class={cellClass(value, difference) + (isChosen ? " here" : "")} style={{ "--depth": depthOf(largest, value) }}
                      onDblClick={() => onGo(index)}>
                      {cellText(value, 3)}
                    </td>
                  );
                })}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {target && <Tip target={target} arrays={arrays} index={indexOf(target.i)} />}
    </figure>
  );
}

export function Grids(props: Omit<GridProps, "which">) {
  return (
    <div class="matrices">
      {(["a", "b", "difference"] as const).map((which) => <Grid key={which} which={which} {...props} />)}
    </div>
  );
}
