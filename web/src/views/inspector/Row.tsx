// Values in a row that wraps: each place with its index, both sides, and their difference.
import { useRef } from "preact/hooks";
import { short } from "../../format";
import type { Values } from "../../model";
import { cellClass, cellText, depthOf, differenceOf, type Measure } from "./cell";
import { cellLabel, indexText, Tip, useTips } from "./Tip";

export interface CutProps {
  arrays: Values;
  indexOf: (i: number) => number[];
  measure: Measure;
  /** Coordinates of the place looked at, joined by commas. */
  chosen: string;
  onGo: (at: number[]) => void;
}

/** How many stacks stand beside each other, for the arrows up and down. */
function across(list: HTMLElement | null): number {
  const items = [...(list?.children ?? [])] as HTMLElement[];
  const top = items[0]?.offsetTop;
  return Math.max(1, items.filter((item) => item.offsetTop === top).length);
}

export function Row({ arrays, indexOf, measure, chosen, isFlat, onGo }: CutProps & { isFlat: boolean }) {
  const list = useRef<HTMLUListElement>(null);
  const { target, handlers } = useTips(list, () => across(list.current));
  const length = (arrays.a ?? arrays.b)?.length ?? 0;
  return (
    <>
      <ul class="stacks" ref={list} aria-label="Values" {...handlers}>
        {Array.from({ length }, (_, i) => {
          const index = indexOf(i);
          const a = arrays.a?.[i];
          const b = arrays.b?.[i];
          const d = arrays.difference?.[i];
          const difference = differenceOf(measure, a, b, d);
          const isChosen = index.join(",") === chosen;
          return (
            <li key={i} data-i={i} tabIndex={i === 0 ? 0 : -1} class={`stack ${difference}${isChosen ? " here" : ""}`}
              aria-label={cellLabel(arrays, index, i)} aria-current={isChosen ? "location" : undefined} onDblClick={() => onGo(index)}>
              <span class="stack-index">{isFlat || index.length === 0 ? indexText(index) : index[index.length - 1]}</span>
              {a !== undefined && <span data-side="A" class={cellClass(a, difference)} style={{ "--depth": depthOf(measure.largest, a) }}>{cellText(a)}</span>}
              {b !== undefined && <span data-side="B" class={cellClass(b, difference)} style={{ "--depth": depthOf(measure.largest, b) }}>{cellText(b)}</span>}
              {d !== undefined && <span class="stack-difference">{Number.isNaN(d) ? "—" : short(d, 2)}</span>}
            </li>
          );
        })}
      </ul>
      {target && target.i < length && <Tip target={target} arrays={arrays} index={indexOf(target.i)} />}
    </>
  );
}
