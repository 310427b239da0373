// The exact values of the cell under the mouse or with the focus. One box, moved about; cells name themselves by
// `data-i`, and the arrows move the focus among them, so that a thousand cells are one stop of the Tab key.
import type { RefObject } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { exact } from "../../format";
import type { Values } from "../../model";

export interface TipTarget {
  i: number;
  box: DOMRect;
}

export interface Tips {
  target: TipTarget | null;
  handlers: {
    onPointerOver: (event: PointerEvent) => void;
    onPointerLeave: () => void;
    onFocusIn: (event: FocusEvent) => void;
    onFocusOut: () => void;
    onKeyDown: (event: KeyboardEvent) => void;
  };
}

/** Rows of `across` cells for the arrows up and down. */
export function useTips(host: RefObject<HTMLElement | null>, across: () => number): Tips {
  const [target, setTarget] = useState<TipTarget | null>(null);
  const show = (event: Event) => {
    const cell = event.target instanceof Element ? event.target.closest<HTMLElement>("[data-i]") : null;
    setTarget(cell && { i: Number(cell.dataset["i"]), box: cell.getBoundingClientRect() });
  };
  const isShown = target !== null;
  // The first Escape is for the tip, wherever the focus is; before anybody else who would take it.
  useEffect(() => {
    if (!isShown) return;
    const hide = (event: KeyboardEvent) => {
      if (event.key !== "Escape") return;
      event.preventDefault();
      event.stopPropagation();
      setTarget(null);
    };
    document.addEventListener("keydown", hide, true);
    return () => document.removeEventListener("keydown", hide, true);
  }, [isShown]);
  const step = (event: KeyboardEvent) => {
    const cells = [...(host.current?.querySelectorAll<HTMLElement>("[data-i]") ?? [])];
    const by = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -across(), ArrowDown: across() }[event.key];
    const next = cells[cells.indexOf(event.target as HTMLElement) + (by ?? 0)];
    if (!by) return;
    event.preventDefault();
    next?.focus();
  };
  return {
    target,
    handlers: {
      onPointerOver: show,
      onPointerLeave: () => setTarget(null),
      onFocusIn: show,
      onFocusOut: () => setTarget(null),
      onKeyDown: step,
    },
  };
}

export const indexText = (index: readonly number[]) => `[${index.join(", ")}]`;

/** As a screen reader says a cell. */
export function cellLabel(arrays: Values, index: readonly number[], i: number): string {
  const parts = [indexText(index)];
  if (arrays.a) parts.push(`A ${exact(arrays.a[i])}`);
  if (arrays.b) parts.push(`B ${exact(arrays.b[i])}`);
  if (arrays.difference) parts.push(`difference ${exact(arrays.difference[i])}`);
  return parts.join(", ");
}

export function Tip({ target, arrays, index }: { target: TipTarget; arrays: Values; index: readonly number[] }) {
  const box = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const tip = box.current!;
    const left = Math.min(Math.max(target.box.left + target.box.width / 2 - tip.offsetWidth / 2, 4), window.innerWidth - tip.offsetWidth - 4);
    const above = target.box.top - tip.offsetHeight - 6;
    tip.style.left = `${left}px`;
    tip.style.top = `${above > 4 ? above : target.box.bottom + 6}px`;
  });
  const { i } = target;
  const rows: [string, number | undefined][] = [["A", arrays.a?.[i]], ["B", arrays.b?.[i]], ["B − A", arrays.difference?.[i]]];
  return (
    <div class="value-tip mono" ref={box} role="tooltip">
      <div class="value-tip-index">{indexText(index)}</div>
      <dl>
        {rows.map(([name, value]) => value !== undefined && <div key={name}><dt>{name}</dt><dd>{exact(value)}</dd></div>)}
      </dl>
    </div>
  );
}
