// The elements that differ most, and the way through them: the largest, the next, the one before.
import { signal, type Signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import * as api from "../../api";
import { exact, number, short } from "../../format";
import type { WorstElement } from "../../model";
import { message } from "../../state";
import type { Look } from "./look";
import { indexText } from "./Tip";

const howMany = 50;

/** The list, fetched once, and where in it one is; -1 before the first. */
export class WorstList {
  readonly list: Signal<WorstElement[] | null> = signal(null);
  readonly error: Signal<string | null> = signal(null);
  readonly current = signal(-1);

  constructor(private readonly look: Look) {}

  async load(id: string, index: number, stop: AbortSignal): Promise<void> {
    try {
      this.list.value = await api.worst(id, index, howMany, stop);
    } catch (error) {
      if (!stop.aborted) this.error.value = message(error);
    }
  }

  goTo(n: number): void {
    const element = this.list.value?.[n];
    if (!element) return;
    this.current.value = n;
    this.look.goTo(element.index);
  }

  first = () => this.goTo(0);
  next = () => this.goTo(this.current.value + 1);
  previous = () => this.goTo(Math.max(this.current.value - 1, 0));
}

export function WorstButtons({ worst }: { worst: WorstList }) {
  const list = worst.list.value;
  const at = worst.current.value;
  const length = list?.length ?? 0;
  return (
    <div class="worst-buttons" role="group" aria-label="Largest differences">
      <button type="button" onClick={worst.first} disabled={length === 0} title="The element that differs most (m)">Max diff</button>
      <button type="button" onClick={worst.previous} disabled={at <= 0} aria-label="Previous worst" title="Previous worst (p)">‹</button>
      <button type="button" onClick={worst.next} disabled={at + 1 >= length} aria-label="Next worst" title="Next worst (n)">›</button>
      <span class="dim worst-place">{at >= 0 && `${at + 1} of ${length}`}</span>
    </div>
  );
}

function difference(element: WorstElement): string {
  const d = number(element.difference);
  return Number.isFinite(d) ? short(d) : `${short(element.a)} | ${short(element.b)}`;
}

export function WorstTable({ worst, id, index }: { worst: WorstList; id: string; index: number }) {
  useEffect(() => {
    const stop = new AbortController();
    void worst.load(id, index, stop.signal);
    return () => stop.abort();
  }, [worst]);
  const list = worst.list.value;
  if (worst.error.value) return <p class="empty-note" role="alert">{worst.error.value}</p>;
  return (
    <section class="worst" aria-label="Worst elements" aria-busy={list === null}>
      <h3>Worst elements</h3>
      {list?.length === 0 && <p class="dim">No element differs.</p>}
      {list && list.length > 0 && (
        <ol>
          {list.map((element, n) => (
            <li key={n}>
              <button type="button" class="plain mono" aria-current={n === worst.current.value ? "true" : undefined}
                title={`A ${exact(element.a)}\nB ${exact(element.b)}`} onClick={() => worst.goTo(n)}>
                <span>{indexText(element.index)}</span><span>{difference(element)}</span>
              </button>
            </li>
          ))}
        </ol>
      )}
    </section>
  );
}
