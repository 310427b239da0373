// What hands do on a picture, as a few words: pan, zoom, hover, pick, keys. Mouse, pen, one finger or two.

export interface GestureHandlers {
  pan: (dx: number, dy: number) => void;
  zoom: (px: number, py: number, factor: number) => void;
  hover: (px: number, py: number) => void;
  leave: () => void;
  pick: (px: number, py: number) => void;
  /** True when it was a key of the picture. */
  key: (name: string, shift: boolean) => boolean;
}

/** A press that moves less than this is a click. */
const clickSlack = 4;

interface Finger {
  x: number;
  y: number;
}

export class Gestures {
  private readonly fingers = new Map<number, Finger>();
  private readonly stop = new AbortController();
  private moved = 0;

  constructor(private readonly host: HTMLElement, private readonly handlers: GestureHandlers) {
    const { signal } = this.stop;
    host.addEventListener("pointerdown", (e) => this.down(e), { signal });
    host.addEventListener("pointermove", (e) => this.move(e), { signal });
    for (const name of ["pointerup", "pointercancel"] as const) host.addEventListener(name, (e) => this.up(e), { signal });
    host.addEventListener("pointerleave", () => this.fingers.size === 0 && handlers.leave(), { signal });
    host.addEventListener("wheel", (e) => this.wheel(e), { signal, passive: false });
    host.addEventListener("keydown", (e) => {
      if (e.ctrlKey || e.metaKey || e.altKey || !handlers.key(e.key, e.shiftKey)) return;
      e.preventDefault();
      e.stopPropagation();
    }, { signal });
  }

  release(): void {
    this.stop.abort();
  }

  private place(e: MouseEvent): Finger {
    const box = this.host.getBoundingClientRect();
    return { x: e.clientX - box.left, y: e.clientY - box.top };
  }

  private down(e: PointerEvent): void {
    if (e.button !== 0) return;
    this.host.setPointerCapture(e.pointerId);
    this.fingers.set(e.pointerId, this.place(e));
    this.moved = 0;
  }

  private move(e: PointerEvent): void {
    const now = this.place(e);
    const last = this.fingers.get(e.pointerId);
    this.handlers.hover(now.x, now.y);
    if (!last) return;
    const other = [...this.fingers].find(([id]) => id !== e.pointerId)?.[1];
    if (other) {
      const far = (p: Finger) => Math.hypot(p.x - other.x, p.y - other.y) || 1;
      this.handlers.zoom((now.x + other.x) / 2, (now.y + other.y) / 2, far(now) / far(last));
    } else {
      this.handlers.pan(now.x - last.x, now.y - last.y);
    }
    this.moved += Math.hypot(now.x - last.x, now.y - last.y);
    this.fingers.set(e.pointerId, now);
  }

  private up(e: PointerEvent): void {
    if (this.fingers.delete(e.pointerId) && this.moved < clickSlack && e.type === "pointerup") {
      const { x, y } = this.place(e);
      this.handlers.pick(x, y);
    }
  }

  private wheel(e: WheelEvent): void {
    e.preventDefault();
    const { x, y } = this.place(e);
    // Lines and pages, as some mice count, are turned into about as many pixels.
    const pixels = e.deltaY * (e.deltaMode === 1 ? 16 : e.deltaMode === 2 ? 400 : 1);
    this.handlers.zoom(x, y, Math.exp(-pixels / 400));
  }
}
