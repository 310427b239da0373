// The comparison on screen: what the server says of it, its result, and the page's own notes. One at a time;
// views read the signals, and only the functions here change them.
import { batch, computed, signal } from "@preact/signals";
import * as api from "./api";
import type { Comparison, DiffResult, ExploreResult, PageState, Settings } from "./model";

export const comparison = signal<Comparison | null>(null);
export const result = signal<DiffResult | ExploreResult | null>(null);
export const pageState = signal<PageState>({});
/** Why the comparison cannot be shown; the server's sentence. */
export const trouble = signal<string | null>(null);

export const isDiff = (r: DiffResult | ExploreResult): r is DiffResult => "pairs" in r;
export const diff = computed(() => (result.value && isDiff(result.value) ? result.value : null));
export const explored = computed(() => (result.value && !isDiff(result.value) ? result.value : null));

export const isUnderWay = (c: Comparison) => c.status === "queued" || c.status === "running";

let opened: string | null = null;
let stopWatching = () => {};

export const message = (error: unknown) => (error instanceof Error ? error.message : String(error));

/** Shows comparison `id`; what was shown before goes. */
export async function open(id: string): Promise<void> {
  if (opened === id) return;
  close();
  opened = id;
  window.addEventListener("focus", check);
  const here = api.carried(id);
  if (here) {
    show(here.comparison, here.result, here.state);
    return;
  }
  await reload(id);
}

/** All at once, so that no view sees one without the others. */
function show(now: Comparison, fresh: DiffResult | ExploreResult, state: PageState): void {
  api.showing(now.id, now.generation);
  batch(() => {
    pageState.value = state;
    comparison.value = now;
    result.value = fresh;
  });
}

export function close(): void {
  stopWatching();
  window.removeEventListener("focus", check);
  opened = null;
  batch(() => {
    comparison.value = null;
    result.value = null;
    pageState.value = {};
    trouble.value = null;
  });
}

/** Takes in a new state of the comparison: waits for the end of one under way, gets the result of one done. */
async function follow(now: Comparison): Promise<void> {
  if (opened !== now.id) return;
  if (isUnderWay(now)) {
    comparison.value = now;
    stopWatching();
    stopWatching = api.watch(now.id, (changed) => void settle(changed), () => void reload(now.id));
    return;
  }
  await settle(now);
}

async function settle(now: Comparison): Promise<void> {
  if (opened !== now.id) return;
  if (now.status !== "done") {
    comparison.value = now;
    return;
  }
  try {
    const [fresh, state] = await Promise.all([api.result<DiffResult | ExploreResult>(now.id), api.pageState(now.id)]);
    if (opened === now.id) show(now, fresh, state);
  } catch (error) {
    if (opened === now.id) trouble.value = message(error);
  }
}

/** Asks once how it stands: at first, and after a lost stream. */
async function reload(id: string): Promise<void> {
  try {
    await follow(await api.comparison(id));
  } catch (error) {
    if (opened === id) trouble.value = message(error);
  }
}

/** What is done may be compared again elsewhere: by another tab, by a script. Its result is then shown anew. */
const check = () => void checkResult();
api.onConflict(check);

let checking = false;

async function checkResult(): Promise<void> {
  const before = comparison.value;
  if (before?.status !== "done" || checking) return;
  checking = true;
  try {
    const now = await api.comparison(before.id);
    if (comparison.value !== before) return;
    if (now.generation !== before.generation || now.status !== "done") await follow(now);
    else if (JSON.stringify(now) !== JSON.stringify(before)) comparison.value = now;
  } catch {
    // Whoever asks next is told what is wrong.
  } finally {
    checking = false;
  }
}

/** Compares again. Throws the server's complaint about the settings. */
export async function compareAgain(settings: Settings): Promise<void> {
  const current = comparison.value;
  if (!current) return;
  await follow(await api.compareAgain(current.id, settings));
}

export async function cancel(): Promise<void> {
  const current = comparison.value;
  if (current) await follow(await api.cancel(current.id));
}

/** Kept at once on the page, and soon on the server; a failure is told to the caller. Mappings are added to those there are. */
export async function keep(changes: Partial<PageState>): Promise<void> {
  const now = comparison.value;
  const mappings = { ...pageState.value.mappings, ...changes.mappings };
  pageState.value = { ...pageState.value, ...changes, ...(changes.mappings && { mappings }) };
  if (now) await api.changePageState(now.id, now.generation, changes);
}
