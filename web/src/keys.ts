// The keyboard. A view registers what its keys do while it is on screen; the help overlay reads the same tables.
import { useLayoutEffect, useRef } from "preact/hooks";

export interface Binding {
  /** As KeyboardEvent.key has it, with "Alt+" in front where Alt is held. */
  keys: string[];
  does: string;
  run: (key: string) => void;
}

/** Views in the order they came; the last one is on top. */
const layers: { title: string; table: Binding[] }[] = [];

const isTyping = (target: EventTarget | null) =>
  target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName)) &&
  !(target instanceof HTMLInputElement && /^(range|checkbox|radio|button)$/.test(target.type));

/** Enter and Space belong to the button or link that has the focus. */
const isControl = (target: EventTarget | null) => target instanceof Element && target.closest("button, a, summary") !== null;

const nameOf = (event: KeyboardEvent) => (event.altKey ? "Alt+" : "") + event.key;

export function startKeys(): void {
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey) return;
    if (isTyping(event.target)) {
      // Out of the field, and no more: what Escape closes elsewhere is for the next one.
      if (event.key === "Escape") (event.target as HTMLElement).blur();
      return;
    }
    if ((event.key === "Enter" || event.key === " ") && isControl(event.target)) return;
    const name = nameOf(event);
    const found = layers.flatMap((layer) => layer.table).findLast((binding) => binding.keys.includes(name));
    if (!found) return;
    event.preventDefault();
    found.run(name);
  });
}

/** Registers keys while the component lives, under a title for the help. */
export function useKeys(title: string, table: Binding[]): void {
  const layer = useRef({ title, table });
  layer.current.table = table;
  // As soon as the view is there, not after the next frame: its first key would be lost.
  useLayoutEffect(() => {
    const mine = layer.current;
    layers.push(mine);
    return () => {
      layers.splice(layers.indexOf(mine), 1);
    };
  }, []);
}

/** What there is now, for the help. */
export const keyTables = (): readonly { title: string; table: readonly Binding[] }[] => layers;
