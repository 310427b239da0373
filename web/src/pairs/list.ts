// The list of pairs as the address, the page's notes and the folds make it. Views read the signals; the functions
// are what mouse and keyboard do.
import { computed, effect, signal } from "@preact/signals";
import { placeOf } from "../format";
import type { Pair } from "../model";
import { comparisonAddress, go, pairAddress, place, query, setQuery } from "../router";
import { comparison, diff, keep, message, pageState } from "../state";
import { notify } from "../ui/Notices";
import { arrange, FILTERS, GROUPS, moved, namesOf, regexIn, SORTS, sorted, wordsTest, type Choices, type Filter, type Group, type Row, type Sort, type Spot, type Test } from "./arrange";
import { placesOf } from "./regexSearch";

const openGroups = signal<ReadonlySet<string>>(new Set());

/** The row the keyboard is on: the key of a group, or the index of a pair. */
export const cursor = signal<string | number | null>(null);

const oneOf = <T extends string>(value: string | null, allowed: readonly T[], otherwise: T): T =>
  allowed.find((item) => item === value) ?? otherwise;

export const choices = computed<Choices>(() => {
  const own = pageState.value.order ?? [];
  return {
    group: oneOf(query.value.get("group"), Object.keys(GROUPS) as Group[], "layer"),
    sort: oneOf(query.value.get("sort"), Object.keys(SORTS) as Sort[], own.length ? "own" : "order"),
    filters: new Set((query.value.get("filter") ?? "").split(",").filter((f): f is Filter => FILTERS.includes(f as Filter))),
    text: query.value.get("q") ?? "",
    own,
  };
});

interface Found {
  /** Those that fitted the last /regex/; null: it makes no sense, or takes too long. */
  fitting: ReadonlySet<Pair> | null;
  error: string | null;
  among: readonly Pair[];
}
const found = signal<Found | null>(null);

const text = computed(() => choices.value.text);

// A /regex/ is tried elsewhere; until the answer comes the list stays as it is.
effect(() => {
  const source = regexIn(text.value), among = diff.value?.pairs;
  const search = new AbortController();
  if (source === null || !among) {
    found.value = null;
    return;
  }
  const fail = (error: unknown) => {
    if (!search.signal.aborted) found.value = { fitting: null, error: message(error), among };
  };
  try {
    new RegExp(source, "i");
  } catch (error) {
    return fail(error); // in the engine's own words
  }
  placesOf(source, among.map(namesOf), search.signal).then((places) => {
    if (!search.signal.aborted) found.value = { fitting: new Set(places.map((at) => among[at]!)), error: null, among };
  }, fail);
  return () => search.abort();
});

/** The test of the text filter, or why there is none. */
const textFilter = computed<{ test: Test; error: string | null }>(() => {
  if (regexIn(text.value) === null) return { test: wordsTest(text.value), error: null };
  const { fitting, error, among } = found.value ?? {};
  return { test: fitting && among === diff.value?.pairs ? (pair) => fitting.has(pair) : () => true, error: error ?? null };
});
export const textError = computed(() => textFilter.value.error);

export const arranged = computed(() => {
  const searching = choices.value.text !== "" && textError.value === null;
  return arrange(diff.value?.pairs ?? [], choices.value, textFilter.value.test, (key) => searching || openGroups.value.has(key));
});

export const rowKey = (row: Row) => (row.kind === "group" ? row.key : row.pair.index);

// --- choices ------------------------------------------------------------------------------------------------

/** The first choice is that kind alone, the next adds to it; none at all is all. */
export function toggleFilter(filter: Filter): void {
  const chosen = new Set(choices.value.filters);
  if (!chosen.delete(filter)) chosen.add(filter);
  setQuery({ filter: chosen.size === FILTERS.length ? null : [...chosen].join(",") }, false);
}

export function setGroup(group: Group): void {
  openGroups.value = new Set();
  setQuery({ group: group === "layer" ? null : group }, false);
}

export const setSort = (sort: Sort) => setQuery({ sort: sort === "order" && !choices.value.own.length ? null : sort }, false);
export const setText = (text: string) => setQuery({ q: text || null });

export function toggleGroup(key: string): void {
  const open = new Set(openGroups.value);
  if (!open.delete(key)) open.add(key);
  openGroups.value = open;
}

export function foldAll(open: boolean): void {
  openGroups.value = new Set(open ? arranged.value.rows.flatMap((row) => (row.kind === "group" ? [row.key] : [])) : []);
}

// --- moving about -------------------------------------------------------------------------------------------

/** Opens the group of a pair, so that its row is there. */
function reveal(pair: Pair): void {
  const { rows } = arranged.value;
  const group = rows.find((row) => row.kind === "group" && row.pairs.includes(pair));
  if (group?.kind === "group" && !group.open) openGroups.value = new Set([...openGroups.value, group.key]);
}

export function moveTo(pair: Pair): void {
  reveal(pair);
  cursor.value = pair.index;
}

export function moveByRow(step: 1 | -1): void {
  const { rows } = arranged.value;
  if (rows.length === 0) return;
  const at = rows.findIndex((row) => rowKey(row) === cursor.value);
  const next = at < 0 ? (step > 0 ? 0 : rows.length - 1) : Math.min(rows.length - 1, Math.max(0, at + step));
  cursor.value = rowKey(rows[next]!);
}

/** Where the cursor stands among the pairs; on a group: just before its first. */
function positionAmong(pairs: Pair[]): number {
  const at = cursor.value;
  if (typeof at === "number") return pairs.findIndex((pair) => pair.index === at);
  const group = arranged.value.rows.find((row) => row.kind === "group" && row.key === at);
  return group?.kind === "group" ? pairs.indexOf(group.pairs[0]!) - 0.5 : -0.5;
}

/** To the next pair that is worth a look; with none of these, to the next row. */
export function moveToDiverged(step: 1 | -1): void {
  const { pairs } = arranged.value;
  if (!pairs.some((pair) => pair.verdict === "diverged")) return moveByRow(step);
  for (let at = Math.floor(positionAmong(pairs) + (step > 0 ? 1 : -0.5)); at >= 0 && at < pairs.length; at += step) {
    const pair = pairs[at]!;
    if (pair.verdict !== "diverged") continue;
    moveTo(pair);
    if (openedPair() !== null) openPair(pair.index);
    return;
  }
}

const openedPair = () => (place.value.view === "comparison" ? place.value.pair : null);

export function openPair(index: number): void {
  const id = comparison.value?.id;
  if (id === undefined) return;
  cursor.value = index;
  // From pair to pair is one visit: "back" leads to the list.
  go(pairAddress(id, index), openedPair() !== null);
}

export function closePair(): void {
  const id = comparison.value?.id;
  if (id !== undefined && openedPair() !== null) go(comparisonAddress(id));
}

/** The pair before or after the open one, in the order of the list. */
export function stepPair(step: 1 | -1): void {
  const { pairs } = arranged.value;
  const at = pairs.findIndex((pair) => pair.index === openedPair());
  const next = pairs[at < 0 ? 0 : at + step];
  if (!next) return;
  moveTo(next);
  openPair(next.index);
}

export function openFirstDivergence(): void {
  const first = diff.value?.first_divergence;
  const pair = first && diff.value?.pairs[first.index];
  if (!pair) return notify("Nothing diverged.");
  moveTo(pair);
  openPair(pair.index);
}

/** Enter: a group folds, a pair opens. */
export function activate(): void {
  const at = cursor.value;
  if (typeof at === "string") toggleGroup(at);
  else if (at !== null) openPair(at);
}

// --- an order of one's own ----------------------------------------------------------------------------------

/** Puts pairs at another place and keeps that, here and on the server. */
export async function reorder(moving: readonly number[], spot: Spot): Promise<void> {
  const all = diff.value?.pairs;
  if (!all) return;
  // Pairs that are filtered out keep their places: the order is one of all pairs.
  const order = sorted(all, choices.value.sort, choices.value.own).map((pair) => pair.index);
  setQuery({ sort: null });
  try {
    await keep({ order: moved(order, moving, spot) });
  } catch (error) {
    notify(`The order is not saved: ${message(error)}`, true);
  }
}

export async function dropOwnOrder(): Promise<void> {
  setQuery({ sort: null });
  try {
    await keep({ order: [] });
  } catch (error) {
    notify(`The order is not forgotten: ${message(error)}`, true);
  }
}

/** The row at the cursor, one place up or down among its neighbours. */
export function moveRow(step: 1 | -1): void {
  const { rows } = arranged.value;
  const row = rows.find((candidate) => rowKey(candidate) === cursor.value);
  if (!row) return;
  const peers = rows.filter((peer) => peer.kind === row.kind && (peer.kind === "group" || peer.group === (row as typeof peer).group));
  const other = peers[peers.indexOf(row) + step];
  if (!other) return;
  const [moving, fixed] = step > 0 ? [other, row] : [row, other];
  void reorder(indicesOf(moving), { before: indicesOf(fixed)[0]! });
  const pair = row.kind === "pair" ? placeOf(row.pair) : row.label;
  notify(`${pair} moved ${step > 0 ? "down" : "up"}`);
}

export const indicesOf = (row: Row): number[] => (row.kind === "group" ? row.pairs.map((pair) => pair.index) : [row.pair.index]);

/** Folds and cursor belong to one comparison. */
export function resetList(): void {
  openGroups.value = new Set();
  cursor.value = null;
}
