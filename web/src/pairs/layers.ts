// A name with {L} for the number of its layer: what is the same in all layers is one thing under it. The server says
// which templates a pair has where it learned them; else the number of the layer is looked for in the name.
import type { Pair } from "../model";

export interface Layered {
  /** "blocks.{L}.attn.hook_q" */
  template: string;
  /** The number that stands there. */
  number: number;
  /** That it is a layer's was told, not guessed from its being the only number in the name. */
  known: boolean;
}

/** The name as the template has it; null: the two do not fit. */
function fitted(name: string, template: string): Layered | null {
  const at = template.indexOf("{L}");
  if (at < 0) return null;
  const head = template.slice(0, at), tail = template.slice(at + 3);
  const digits = name.slice(head.length, name.length - tail.length);
  return name.startsWith(head) && name.endsWith(tail) && /^\d{1,9}$/.test(digits) ? { template, number: Number(digits), known: true } : null;
}

/** By the first number in the name that is the layer's; where none is (B may count from elsewhere), by the only number. */
function found(name: string, layer: number | null): Layered | null {
  const runs = [...name.matchAll(/\d+/g)];
  const own = layer === null ? undefined : runs.find((one) => Number(one[0]) === layer);
  const run = own ?? (runs.length === 1 ? runs[0] : undefined);
  if (!run || run[0].length > 9) return null;
  return { template: `${name.slice(0, run.index)}{L}${name.slice(run.index + run[0].length)}`, number: Number(run[0]), known: own !== undefined };
}

export function layeredOf(pair: Pair, side: "a" | "b"): Layered | null {
  const name = pair[side]?.name, template = pair.template?.[side];
  if (name === undefined) return null;
  return (template ? fitted(name, template) : null) ?? found(name, pair.layer);
}

/** What the pair is in all layers: "a → b", a name alone where both are the same or one is missing. */
export function templateOf(pair: Pair): string {
  const names = (["a", "b"] as const).map((side) => pair[side] && (layeredOf(pair, side)?.template ?? pair[side]!.name));
  return [...new Set(names.filter(Boolean))].join(" → ");
}

/** The templates under which two tensors are a pair in every layer; null where one has no layer. */
export function everyLayer(x: Layered | null, y: Layered | null): { a: string; b: string } | null {
  if (!x || !y || !(x.known || y.known)) return null;
  const apart = y.number - x.number;
  const b = apart === 0 ? y.template : y.template.replace("{L}", `{L${apart > 0 ? "+" : ""}${apart}}`);
  return { a: x.template, b };
}

const FOUND_BY: Record<string, string> = {
  manual: "hand", program: "your program", value: "values", fuzzy: "similar names", exact: "name", stage: "layer and stage", fused: "parts of a whole", regex: "expression",
};

/** What paired two tensors, in words. */
export const foundBy = (strategy: string) => FOUND_BY[strategy] ?? strategy;

/** Without the kind of its file, which would take the room of what tells it apart. */
export const bare = (name: string) => name.replace(/\.(pth|pt|bin|ckpt|safetensors|npy|npz|gguf|onnx|pkl|pickle|tensor)$/, "");

/** That the tensor has another name in B, not only another kind of file: both are worth their room. */
export const isRenamed = (pair: Pair) => pair.a !== null && pair.b !== null && bare(pair.a.name) !== bare(pair.b.name);

const SURE = 0.9;

/** How sure it is that two tensors belong together, where that is in doubt; null: there is none. */
export const doubtOf = (pair: Pair): number | null =>
  pair.a && pair.b && pair.sure !== undefined && pair.sure < SURE ? pair.sure : null;

/** The other names of the tensor on one side. */
export const aliasesOf = (pair: Pair, side: "a" | "b"): string[] =>
  (pair.aliases?.[side] ?? []).filter((name) => name !== pair[side]?.name);
