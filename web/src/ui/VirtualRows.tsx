// Rows of one height of which only those in sight exist. The page scrolls in the nearest `.pane`, in which the
// list may begin anywhere: what stands above scrolls away with it.
import type { ComponentChildren, RefObject } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

const MARGIN = 12; // rows beyond the edges, so that a flick of the wheel shows no gap

interface Props {
  count: number;
  height: number;
  /** A row that is scrolled into sight whenever it changes, and exists out of sight too, to be pointed at; null none. */
  reveal: number | null;
  /** What of the pane's top is covered by what sticks there. */
  covered: number;
  body: RefObject<HTMLDivElement | null>;
  render: (index: number) => ComponentChildren;
}

function paneOf(element: Element): HTMLElement {
  return element.closest<HTMLElement>(".pane") ?? document.documentElement;
}

/** Where the list begins, in the coordinates of what scrolls. */
function offsetIn(pane: HTMLElement, element: HTMLElement): number {
  return element.getBoundingClientRect().top - pane.getBoundingClientRect().top + pane.scrollTop;
}

/** At first as many as the window could hold; the observer measures what is really in sight before that is painted. */
function useWindow(body: RefObject<HTMLDivElement | null>, count: number, height: number): [number, number] {
  const [range, setRange] = useState<[number, number]>(() => [0, Math.ceil(window.innerHeight / height)]);
  useLayoutEffect(() => {
    const list = body.current!, pane = paneOf(list);
    const update = () => {
      const top = pane.scrollTop - offsetIn(pane, list);
      const first = Math.max(0, Math.floor(top / height) - MARGIN);
      const last = Math.min(count, Math.ceil((top + pane.clientHeight) / height) + MARGIN);
      setRange((old) => (old[0] === first && old[1] === last ? old : [first, Math.max(first, last)]));
    };
    pane.addEventListener("scroll", update, { passive: true });
    const resized = new ResizeObserver(update);
    resized.observe(pane);
    if (list.parentElement) resized.observe(list.parentElement);
    return () => {
      pane.removeEventListener("scroll", update);
      resized.disconnect();
    };
  }, [count, height]);
  return range;
}

/** The rows that exist, in order. */
function existing(first: number, last: number, reveal: number | null): number[] {
  const indices = Array.from({ length: Math.max(0, last - first) }, (_, i) => first + i);
  if (reveal === null || (first <= reveal && reveal < last)) return indices;
  return reveal < first ? [reveal, ...indices] : [...indices, reveal];
}

/** Rows that stay in sight stay the same objects, so that scrolling costs only those that come into it. */
function useKept(indices: readonly number[], render: Props["render"]): ComponentChildren[] {
  const kept = useRef<{ render: Props["render"] | null; rows: Map<number, ComponentChildren> }>({ render: null, rows: new Map() });
  const before = kept.current.render === render ? kept.current.rows : new Map<number, ComponentChildren>();
  const rows = new Map<number, ComponentChildren>();
  for (const index of indices) rows.set(index, before.get(index) ?? render(index));
  kept.current = { render, rows };
  return [...rows.values()];
}

export function VirtualRows({ count, height, reveal, covered, body, render }: Props) {
  const [first, last] = useWindow(body, count, height);
  const revealed = useRef<number | null>(null);
  useEffect(() => {
    if (reveal === null || reveal === revealed.current) return;
    revealed.current = reveal;
    const pane = paneOf(body.current!);
    const top = offsetIn(pane, body.current!) + reveal * height;
    const room = pane.clientHeight - covered;
    if (top < pane.scrollTop + covered) pane.scrollTop = top - covered - height;
    else if (top + height > pane.scrollTop + pane.clientHeight) pane.scrollTop = top - covered - Math.max(0, room - 3 * height);
  }, [reveal, height]);

  const rows = useKept(existing(first, Math.min(last, count), reveal), render);
  return (
    <div class="rows" role="rowgroup" ref={body} style={{ height: `${count * height}px` }}>
      {rows}
    </div>
  );
}
