// Pairs made by hand: they come before every strategy, and the comparison is made again with them.
import { signal } from "@preact/signals";
import type { ManualPair, Pair } from "../../model";
import { everyLayer, layeredOf } from "../../pairs/layers";
import { compareAgain, comparison, message } from "../../state";
import { notify } from "../../ui/Notices";

/** The dialog for pairing: closed, or open with a tensor chosen already. */
export const pairingOpen = signal<{ chosen: Pair | null } | null>(null);

export const startPairing = (chosen: Pair | null) => (pairingOpen.value = { chosen });

export async function applyPairs(pairs: ManualPair[]): Promise<boolean> {
  const settings = { ...comparison.value?.settings };
  if (pairs.length) settings.pairs = pairs;
  else delete settings.pairs;
  try {
    await compareAgain(settings);
    return true;
  } catch (error) {
    notify(message(error), true);
    return false;
  }
}

const sidesOf = (x: Pair, y: Pair): [a: Pair, b: Pair] => (x.verdict === "only_a" ? [x, y] : [y, x]);

/** Both names with {L} for the layer; null where one has none. */
export function templatesOf(x: Pair, y: Pair): ManualPair | null {
  const [a, b] = sidesOf(x, y);
  return everyLayer(layeredOf(a, "a"), layeredOf(b, "b"));
}

/** Adds a pair, in every layer where both names have one; what was paired by hand before is taken out of that pair. */
export async function pairByHand(x: Pair, y: Pair, inEveryLayer = true): Promise<boolean> {
  const [left, right] = sidesOf(x, y);
  const a = left.a?.name, b = right.b?.name;
  if (a === undefined || b === undefined) return false;
  const templates = inEveryLayer ? templatesOf(x, y) : null;
  const added = templates ?? { a, b };
  const gone = (pair: ManualPair) => pair.a === a || pair.b === b || pair.a === added.a || pair.b === added.b;
  const id = comparison.value?.id, before = comparison.value?.settings.pairs ?? [];
  const done = await applyPairs([...before.filter((pair) => !gone(pair)), added]);
  const undo = () => { if (comparison.value?.id === id) void applyPairs(before); };
  if (done) notify(templates ? `Paired in every layer: ${templates.a} with ${templates.b}` : `Paired: ${a} with ${b}`, false, { label: "Undo", run: undo });
  return done;
}

/** The pairs of a pairs file (docs/diff.md); throws a sentence when it is none. */
export function readPairsFile(text: string): ManualPair[] {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    throw new Error("this is not JSON");
  }
  const list = (parsed as { pairs?: unknown } | null)?.pairs;
  if (!Array.isArray(list)) throw new Error("this is not a pairs file: it has no list `pairs`");
  return list.map((entry: Record<string, unknown>, at) => {
    if (typeof entry?.["a"] !== "string" || typeof entry["b"] !== "string") throw new Error(`pair ${at + 1} has no names \`a\` and \`b\``);
    const pair: ManualPair = { a: entry["a"], b: entry["b"] };
    if (Array.isArray(entry["a_part"])) pair.a_part = entry["a_part"] as [number, number];
    if (Array.isArray(entry["b_part"])) pair.b_part = entry["b_part"] as [number, number];
    return pair;
  });
}
