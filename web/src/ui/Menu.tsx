// A button with a list of things to do. Closes on choice, on Escape, and when click or focus go elsewhere; arrows move
// inside.
import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";

interface Props {
  label: ComponentChildren;
  title: string;
  /** Elements with role="menuitem". */
  children: (close: () => void) => ComponentChildren;
}

export function Menu({ label, title, children }: Props) {
  const [open, setOpen] = useState(false);
  const root = useRef<HTMLDivElement>(null);
  const id = useId();
  const items = () => [...(root.current?.querySelectorAll<HTMLElement>("[role=menuitem]") ?? [])];

  useEffect(() => {
    if (!open) return;
    items()[0]?.focus();
    const away = (event: PointerEvent) => {
      if (!(event.target instanceof Node && root.current?.contains(event.target))) setOpen(false);
    };
    document.addEventListener("pointerdown", away);
    return () => document.removeEventListener("pointerdown", away);
  }, [open]);

  const close = () => {
    setOpen(false);
    root.current?.querySelector("button")?.focus();
  };
  const onFocusOut = (event: FocusEvent) => {
    if (event.relatedTarget instanceof Node && !root.current?.contains(event.relatedTarget)) setOpen(false);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (!open) return;
    const list = items(), at = list.findIndex((item) => item === document.activeElement);
    if (event.key === "Escape") close();
    else if (event.key === "ArrowDown") list[(at + 1) % list.length]?.focus();
    else if (event.key === "ArrowUp") list[(at + list.length - 1) % list.length]?.focus();
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div class="menu" ref={root} onKeyDown={onKeyDown} onFocusOut={onFocusOut}>
      <button type="button" title={title} aria-haspopup="menu" aria-expanded={open} aria-controls={id} onClick={() => setOpen(!open)}>
        {label}
      </button>
      {open && <div class="menu-list" role="menu" id={id} aria-label={title}>{children(close)}</div>}
    </div>
  );
}
