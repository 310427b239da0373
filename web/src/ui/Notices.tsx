// One line at the bottom of the window for what happened elsewhere than where one looks: saved, failed, copied.
// A live region, so that it is read out too.
import { signal } from "@preact/signals";

const current = signal<{ text: string; bad: boolean } | null>(null);
let timer = 0;

const SHOWN_MS = 6000;

export function notify(text: string, bad = false): void {
  current.value = { text, bad };
  window.clearTimeout(timer);
  timer = window.setTimeout(() => (current.value = null), SHOWN_MS);
}

export function Notices() {
  const notice = current.value;
  return (
    <div class="notices" role="status" aria-live="polite">
      {notice && <p class={notice.bad ? "notice bad" : "notice"}>{notice.text}</p>}
    </div>
  );
}
