// What somebody types to find: "0.5", "0.5..1", "> 3", "nan", "inf", "-inf", "zero".
import type { Search } from "../../api";

export type Wanted = Pick<Search, "low" | "high" | "what">;

const numeral = String.raw`[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?`;
const single = new RegExp(`^${numeral}$`, "i");
const range = new RegExp(String.raw`^(${numeral})\s*(?:\.\.|to)\s*(${numeral})$`, "i");
const bound = new RegExp(String.raw`^([<>])=?\s*(${numeral})$`, "i");

/** A value is found when it rounds to what was typed: nobody types all seventeen digits. */
function around(text: string): Wanted | null {
  const value = Number(text);
  if (!Number.isFinite(value)) return null;
  const [mantissa = "", power = "0"] = text.toLowerCase().split("e");
  const digits = mantissa.split(".")[1]?.length ?? 0;
  const half = digits === 0 && power === "0" ? 0 : 0.5 * 10 ** (Number(power) - digits);
  return { low: value - half, high: value + half };
}

/** Null when it cannot be read. */
export function parseSearch(text: string): Wanted | null {
  const typed = text.trim().replaceAll("−", "-");
  const word = /^[+-]?(nan|inf|zero)$/i.exec(typed)?.[1]?.toLowerCase();
  // With a sign an infinity is a value like any other; without, it is either of the two.
  if (word === "inf" && typed.startsWith("-")) return { low: -Infinity, high: -Infinity };
  if (word === "inf" && typed.startsWith("+")) return { low: Infinity, high: Infinity };
  if (word === "nan" || word === "inf" || word === "zero") return { what: word };
  if (single.test(typed)) return around(typed);
  const [, from, to] = range.exec(typed) ?? [];
  if (from !== undefined && to !== undefined) {
    return { low: Math.min(Number(from), Number(to)), high: Math.max(Number(from), Number(to)) };
  }
  const [, sign, edge] = bound.exec(typed) ?? [];
  if (sign === undefined || edge === undefined) return null;
  return sign === "<" ? { low: -Number.MAX_VALUE, high: Number(edge) } : { low: Number(edge), high: Number.MAX_VALUE };
}
