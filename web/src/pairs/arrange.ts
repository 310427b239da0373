// Which pairs the list shows, in which order, under which headings. Pure: from the result and the choices of the
// address to rows of equal height.
import type { Pair, Verdict } from "../model";
import { aliasesOf, templateOf } from "./layers";
import { errorOf, isUnmatched, sizeOf } from "./measure";

export const GROUPS = { layer: "layer", template: "template", name: "name", similarity: "similarity", none: "nothing" } as const;
export type Group = keyof typeof GROUPS;

export const SORTS = {
  order: "layer and stage", name: "name", best: "best match", worst: "largest difference", size: "size", own: "my order",
} as const;
export type Sort = keyof typeof SORTS;

export const FILTERS = ["diverged", "errors", "within", "identical", "unmatched"] as const;
export type Filter = (typeof FILTERS)[number];

export interface Choices {
  group: Group;
  sort: Sort;
  /** Empty: all. */
  filters: ReadonlySet<Filter>;
  /** Words that must all occur, or /regex/. */
  text: string;
  /** Indices as somebody dragged them. */
  own: readonly number[];
}

export interface GroupRow {
  kind: "group";
  key: string;
  label: string;
  pairs: Pair[];
  open: boolean;
}
export interface PairRow {
  kind: "pair";
  pair: Pair;
  group: string | null;
}
export type Row = GroupRow | PairRow;

const FILTER_OF: Record<Verdict, Filter> = {
  diverged: "diverged", error: "errors", within: "within", identical: "identical", only_a: "unmatched", only_b: "unmatched",
};

export type Test = (pair: Pair) => boolean;

/** What stands between the strokes of /regex/; null: the text is words. */
export const regexIn = (text: string) => /^\/(.+?)\/?$/.exec(text)?.[1] ?? null;

export function wordsTest(text: string): Test {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return (pair) => {
    const names = namesOf(pair).toLowerCase();
    return words.every((word) => names.includes(word));
  };
}

// Asked for with every letter that is typed, of every pair.
const searchable = new WeakMap<Pair, string>();

export function namesOf(pair: Pair): string {
  let text = searchable.get(pair);
  if (text === undefined) {
    text = [...new Set([pair.name, pair.a?.name, pair.b?.name, ...aliasesOf(pair, "a"), ...aliasesOf(pair, "b"), pair.diagnosis?.[0]?.kind])].filter(Boolean).join("\n");
    searchable.set(pair, text);
  }
  return text;
}

export function filtered(pairs: readonly Pair[], filters: ReadonlySet<Filter>, test: Test): Pair[] {
  return pairs.filter((pair) => (filters.size === 0 || filters.has(FILTER_OF[pair.verdict])) && test(pair));
}

let collator: Intl.Collator | undefined; // made when it is needed: a browser takes 20 ms for its first one

/** Digits as numbers: layer 10 comes after layer 9. */
const compareNames = (x: string, y: string) => (collator ??= new Intl.Collator("en", { numeric: true })).compare(x, y);

/** What was not compared has no error: it goes last, whichever way the rest is sorted. */
function byError(sign: 1 | -1) {
  return (x: Pair, y: Pair) => {
    const a = errorOf(x), b = errorOf(y);
    if (Number.isNaN(a) || Number.isNaN(b)) return Number(Number.isNaN(a)) - Number(Number.isNaN(b)) || x.index - y.index;
    return (a === b ? 0 : sign * (a < b ? -1 : 1)) || x.index - y.index;
  };
}

export function sorted(pairs: readonly Pair[], sort: Sort, own: readonly number[]): Pair[] {
  const list = [...pairs];
  switch (sort) {
    case "order":
      return list.sort((x, y) => x.index - y.index);
    case "name":
      return list.sort((x, y) => compareNames(x.name, y.name) || x.index - y.index);
    case "best":
      return list.sort(byError(1));
    case "worst":
      return list.sort(byError(-1));
    case "size":
      return list.sort((x, y) => sizeOf(y) - sizeOf(x) || x.index - y.index);
    case "own": {
      const rank = new Map(own.map((index, at) => [index, at]));
      const rankOf = (pair: Pair) => rank.get(pair.index) ?? own.length + pair.index;
      return list.sort((x, y) => rankOf(x) - rankOf(y));
    }
  }
}

const BANDS: [most: number, label: string][] = [
  [0, "no error"], [1e-6, "error under 1e-6"], [1e-4, "error 1e-6 to 1e-4"], [1e-2, "error 1e-4 to 1 %"],
  [0.1, "error 1 % to 10 %"], [1, "error 10 % to 100 %"], [Number.MAX_VALUE, "error over 100 %"],
];

function bandOf(pair: Pair): [key: string, label: string] {
  const after = BANDS.length;
  if (isUnmatched(pair)) return [String(after + 2), "without a partner"];
  if (!pair.metrics) return [String(after + 1), "not compared"];
  const error = errorOf(pair);
  const at = BANDS.findIndex(([most]) => error <= most);
  return at < 0 ? [String(after), "NaN or infinity on one side"] : [String(at), BANDS[at]![1]];
}

function headingOf(pair: Pair, group: Group): [key: string, label: string] {
  switch (group) {
    case "layer":
      return pair.layer === null ? ["~", "no layer"] : [String(pair.layer), `layer ${pair.layer}`];
    case "name": {
      const pattern = pair.layer === null ? pair.name.replace(/\d+/g, "*") : pair.stage;
      return [pattern, pattern];
    }
    case "template": {
      const template = templateOf(pair);
      return [template, template];
    }
    case "similarity":
      return bandOf(pair);
    case "none":
      return ["", ""];
  }
}

/** Similarity has an order of its own; the other headings come as their first pair does. */
function grouped(pairs: readonly Pair[], group: Group): Omit<GroupRow, "open">[] {
  const groups = new Map<string, Omit<GroupRow, "open">>();
  for (const pair of pairs) {
    const [key, label] = headingOf(pair, group);
    const found = groups.get(key);
    if (found) found.pairs.push(pair);
    else groups.set(key, { kind: "group", key, label, pairs: [pair] });
  }
  const list = [...groups.values()];
  return group === "similarity" ? list.sort((x, y) => compareNames(x.key, y.key)) : list;
}

export interface Arranged {
  /** Every pair that passes the filters, in the order of the list, shown or folded away. */
  pairs: Pair[];
  rows: Row[];
  groups: number;
}

export function arrange(pairs: readonly Pair[], choices: Choices, test: Test, isOpen: (key: string) => boolean): Arranged {
  const list = sorted(filtered(pairs, choices.filters, test), choices.sort, choices.own);
  if (choices.group === "none") return { pairs: list, rows: list.map((pair) => ({ kind: "pair", pair, group: null })), groups: 0 };
  const groups = grouped(list, choices.group);
  const rows: Row[] = [];
  for (const group of groups) {
    if (choices.group === "template" && group.pairs.length === 1) { // what no other layer has stands for itself
      rows.push({ kind: "pair", pair: group.pairs[0]!, group: null });
      continue;
    }
    const open = groups.length === 1 || isOpen(group.key);
    rows.push({ ...group, open });
    if (open) for (const pair of group.pairs) rows.push({ kind: "pair", pair, group: group.key });
  }
  return { pairs: groups.flatMap((group) => group.pairs), rows, groups: groups.length };
}

/** A place in the order: beside a pair; null: at the end. */
export type Spot = { before: number } | { after: number } | null;

/** The order after `moving` were put there; beside one of themselves they stay. */
export function moved(order: readonly number[], moving: readonly number[], spot: Spot): number[] {
  const gone = new Set(moving);
  const beside = spot === null ? null : "before" in spot ? spot.before : spot.after;
  if (beside !== null && gone.has(beside)) return [...order];
  const rest = order.filter((index) => !gone.has(index));
  const at = spot === null ? rest.length : rest.indexOf(beside!) + ("after" in spot ? 1 : 0);
  return [...rest.slice(0, at), ...moving, ...rest.slice(at)];
}
