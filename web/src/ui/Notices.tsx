// One line at the bottom of the window for what happened elsewhere than where one looks: saved, failed, copied.
// A live region, so that it is read out too.
import { signal } from "@preact/signals";

export interface Action {
  label: string;
  run: () => void;
}

const current = signal<{ text: string; bad: boolean; action: Action | null } | null>(null);
let timer = 0;

const SHOWN_MS = 6000, SHOWN_WITH_ACTION_MS = 15_000;

/** `action`: what can be done about it, as long as the line is there. */
export function notify(text: string, bad = false, action: Action | null = null): void {
  current.value = { text, bad, action };
  window.clearTimeout(timer);
  timer = window.setTimeout(() => (current.value = null), action ? SHOWN_WITH_ACTION_MS : SHOWN_MS);
}

export function Notices() {
  const notice = current.value;
  const act = (action: Action) => {
    current.value = null;
    action.run();
  };
  return (
    <div class="notices" role="status" aria-live="polite">
      {notice && <p class={notice.bad ? "notice bad" : "notice"}>{notice.text}{notice.action && <button type="button" class="plain" onClick={() => act(notice.action!)}>{notice.action.label}</button>}</p>}
    </div>
  );
}
