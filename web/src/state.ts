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
  const here = api.carried(id);
  if (here) {
    batch(() => {
      pageState.value = here.state;
      comparison.value = here.comparison;
      result.value = here.result;
    });
    return;
  }
  try {
    const [now, state] = await Promise.all([api.comparison(id), api.pageState(id)]);
    if (opened !== id) return;
    pageState.value = state;
    await follow(now);
  } catch (error) {
    if (opened === id) trouble.value = message(error);
  }
}

export function close(): void {
  stopWatching();
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

/** Result and status change together, so that no view sees one without the other. */
async function settle(now: Comparison): Promise<void> {
  if (opened !== now.id) return;
  if (now.status !== "done") {
    comparison.value = now;
    return;
  }
  try {
    const fresh = await api.result<DiffResult | ExploreResult>(now.id);
    if (opened !== now.id) return;
    batch(() => {
      comparison.value = now;
      result.value = fresh;
    });
  } catch (error) {
    trouble.value = message(error);
  }
}

/** After a lost stream: ask once how it stands. */
async function reload(id: string): Promise<void> {
  try {
    await follow(await api.comparison(id));
  } catch (error) {
    if (opened === id) trouble.value = message(error);
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

/** Kept at once on the page, and soon on the server; a failure is told to the caller. */
export async function keep(changes: Partial<PageState>): Promise<void> {
  const id = opened;
  pageState.value = { ...pageState.value, ...changes };
  if (id) await api.savePageState(id, pageState.value);
}
