// A modal dialog on the browser's own <dialog>: focus stays inside, Escape closes, the rest of the page is inert. What
// had the focus before gets it back: the browser's own way to do so ends when the element is taken from the page.
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";

interface Props {
  title: string;
  onClose: () => void;
  children: ComponentChildren;
  wide?: boolean;
}

export function Dialog({ title, onClose, children, wide }: Props) {
  const box = useRef<HTMLDialogElement>(null);
  const before = useRef(document.activeElement);
  useLayoutEffect(() => {
    const dialog = box.current!;
    dialog.showModal();
    return () => {
      dialog.close();
      // After the element is gone: until then the browser keeps the focus to it.
      setTimeout(() => before.current instanceof HTMLElement && document.activeElement === document.body && before.current.focus());
    };
  }, []);
  return (
    <dialog ref={box} class={wide ? "dialog wide" : "dialog"} aria-label={title} onCancel={onClose}
      onClick={(event) => event.target === box.current && onClose()}
      onKeyDown={(event) => event.stopPropagation()}>
      <div class="dialog-body">
        <header class="dialog-head">
          <h2>{title}</h2>
          <button type="button" class="plain" onClick={onClose} aria-label="Close">×</button>
        </header>
        {children}
      </div>
    </dialog>
  );
}
