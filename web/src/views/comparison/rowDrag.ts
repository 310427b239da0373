// Dragging a row of the list: to another place, or onto the partner it lacks. Done with pointer events, because
// the browser's own drag and drop loses a row that is scrolled out of sight and with it its element.
import type { RefObject } from "preact";
import { useRef, useState } from "preact/hooks";
import type { Row } from "../../pairs/arrange";

/** Where a row would go: before row `at` of the list (its length: at the end), or onto it. */
export interface Drop {
  at: number;
  onto: boolean;
}

export interface Drag {
  from: number;
  drop: Drop | null;
}

interface Options {
  body: RefObject<HTMLDivElement | null>;
  rows: readonly Row[];
  height: number;
  /** `alone`: with Shift, which means this one and no other. */
  onDrop: (from: number, drop: Drop, alone: boolean) => void;
}

const EDGE = 40; // pixels at the ends of the pane where it scrolls by itself
const SPEED = 14;

/** Two rows that can become a pair: what only A has and what only B has. */
function canPair(x: Row | undefined, y: Row | undefined): boolean {
  if (x?.kind !== "pair" || y?.kind !== "pair") return false;
  const verdicts = [x.pair.verdict, y.pair.verdict];
  return verdicts.includes("only_a") && verdicts.includes("only_b");
}

/** A pair stays within its group, and a group among groups: headings follow from the pairs themselves. */
function canMove(rows: readonly Row[], from: number, at: number): boolean {
  const row = rows[from]!, next = rows[at], before = rows[at - 1];
  if (row.kind === "group") return next === undefined || next.kind === "group";
  const inGroup = (other: Row | undefined) => other?.kind === "pair" && other.group === row.group;
  return inGroup(next) || inGroup(before);
}

function dropAt(rows: readonly Row[], from: number, position: number): Drop | null {
  const over = Math.floor(position), part = position - over;
  if (over !== from && canPair(rows[from], rows[over]) && part > 0.2 && part < 0.8) return { at: over, onto: true };
  const at = Math.max(0, Math.min(rows.length, Math.round(position)));
  return canMove(rows, from, at) ? { at, onto: false } : null;
}

export function useRowDrag({ body, rows, height, onDrop }: Options) {
  const [drag, setDrag] = useState<Drag | null>(null);
  const last = useRef<Drag | null>(null);

  const begin = (from: number, event: PointerEvent) => {
    const list = body.current!;
    const pane = list.closest<HTMLElement>(".pane")!;
    let y = event.clientY, frame = 0;
    const show = (next: Drag | null) => {
      last.current = next;
      setDrag(next);
    };
    const place = () => {
      const position = (y - list.getBoundingClientRect().top) / height;
      show({ from, drop: dropAt(rows, from, position) });
    };
    const scroll = () => {
      const box = pane.getBoundingClientRect();
      const by = y < box.top + EDGE * 2 ? -SPEED : y > box.bottom - EDGE ? SPEED : 0;
      if (by) {
        pane.scrollTop += by;
        place();
      }
      frame = requestAnimationFrame(scroll);
    };
    const move = (moved: PointerEvent) => {
      y = moved.clientY;
      place();
    };
    const end = () => {
      cancelAnimationFrame(frame);
      for (const type of ["pointerup", "pointercancel", "keydown"]) window.removeEventListener(type, finish, true);
      window.removeEventListener("pointermove", move);
      show(null);
    };
    const finish = (ended: Event) => {
      if (ended instanceof KeyboardEvent && ended.key !== "Escape") return;
      const drop = ended.type === "pointerup" ? last.current?.drop : null;
      end();
      if (drop) onDrop(from, drop, (ended as PointerEvent).shiftKey);
    };
    for (const type of ["pointerup", "pointercancel", "keydown"]) window.addEventListener(type, finish, true);
    window.addEventListener("pointermove", move);
    frame = requestAnimationFrame(scroll);
    event.preventDefault();
    show({ from, drop: null });
  };
  return { drag, begin };
}
