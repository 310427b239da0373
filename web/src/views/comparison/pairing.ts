// Pairs made by hand: they come before every strategy, and the comparison is made again with them.
import { signal } from "@preact/signals";
import type { ManualPair, Pair } from "../../model";
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

/** Adds a pair; a tensor that was paired by hand before is taken out of that pair. */
export async function pairByHand(x: Pair, y: Pair): Promise<boolean> {
  const a = (x.verdict === "only_a" ? x : y).a?.name, b = (x.verdict === "only_b" ? x : y).b?.name;
  if (a === undefined || b === undefined) return false;
  const others = (comparison.value?.settings.pairs ?? []).filter((pair) => pair.a !== a && pair.b !== b);
  return applyPairs([...others, { a, b }]);
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
