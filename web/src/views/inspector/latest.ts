// Answers for what is looked at now. While one question is on its way the newest next one waits, and those
// between are never asked: a slider shows values as fast as the server answers, in order, and ends on the right ones.
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { message } from "../../state";

export interface Latest<T> {
  /** The newest answer; it may still be that to an earlier question. */
  data: T | null;
  /** The question that `data` answers. */
  key: string | null;
  error: string | null;
}

type Load<T> = (signal: AbortSignal) => Promise<T>;

export function useLatest<T>(key: string | null, load: Load<T>): Latest<T> {
  const [answer, setAnswer] = useState<Latest<T>>({ data: null, key: null, error: null });
  const line = useRef<{ abort: AbortController; isBusy: boolean; next: { key: string; load: Load<T> } | null } | null>(null);
  useLayoutEffect(() => {
    line.current = { abort: new AbortController(), isBusy: false, next: null };
    return () => line.current?.abort.abort();
  }, []);
  // Not an effect after the next frame: that frame would come on top of every answer.
  useLayoutEffect(() => {
    const state = line.current;
    if (!state || key === null) return;
    state.next = { key, load };
    if (state.isBusy) return;
    state.isBusy = true;
    void (async () => {
      const { signal } = state.abort;
      for (let now = state.next; now; now = state.next) {
        state.next = null;
        try {
          const data = await now.load(signal);
          if (signal.aborted) return;
          setAnswer({ data, key: now.key, error: null });
        } catch (error) {
          if (signal.aborted) return;
          setAnswer((was) => ({ ...was, error: message(error) }));
        }
      }
      state.isBusy = false;
    })();
  }, [key]);
  return answer;
}
