// Numbers, shapes, sizes and names as text. One way to write each, everywhere on the page.
import type { Num, Pair } from "./model";

export function number(x: Num | null | undefined): number {
  if (x === "inf") return Infinity;
  if (x === "-inf") return -Infinity;
  return typeof x === "number" ? x : NaN;
}

/** Three or four digits that matter. */
export function short(x: Num | null | undefined, digits = 3): string {
  if (x === null || x === undefined) return "";
  const v = number(x);
  if (!Number.isFinite(v)) return Number.isNaN(v) ? "NaN" : v > 0 ? "inf" : "-inf";
  if (v === 0) return "0";
  const size = Math.abs(v);
  if (size >= 1e-3 && size < 1e5) return String(Number(v.toPrecision(digits)));
  return v.toExponential(digits - 1).replace("e+", "e");
}

/** Statistics are of the finite values: where there are too few for one, it does not exist, and is no NaN among them. */
export const statistic = (x: Num, digits = 3) => (Number.isNaN(number(x)) ? "—" : short(x, digits));

/** Every digit there is, for tooltips. */
export const exact = (x: Num | null | undefined) => (x === null || x === undefined ? "" : x === "nan" ? "NaN" : String(x));

/** A whole number. Without Intl, which takes a browser 20 ms to begin with: most of the page needs no more of it. */
export const count = (n: number) => String(n).replace(/\B(?=(\d{3})+$)/g, ",");

export const plural = (n: number, one: string, many = one + "s") => `${count(n)} ${n === 1 ? one : many}`;

export const shape = (dimensions: readonly number[]) => `[${dimensions.join(", ")}]`;

export function bytes(n: number, digits = 3): string {
  const units = ["B", "KB", "MB", "GB", "TB"];
  let at = 0;
  while (n >= 1000 && at < units.length - 1) {
    n /= 1000;
    at++;
  }
  return `${at === 0 ? n : n.toPrecision(digits)} ${units[at]}`;
}

export const percent = (share: number) => `${Math.round(share * 100)} %`;

const ROUNDING = 1e-13;

/** A share that is rounded down: 100 % are all. */
export const shareText = (share: number) => (share > 0 && share < 0.01 ? "<1 %" : `${Math.floor(share * 100 + 1e-9)} %`);

/** Cosine near 1 says nothing in three digits: what is missing from 1 does. */
export function similarity(x: Num): string {
  const v = number(x);
  if (!Number.isFinite(v)) return short(x);
  const missing = 1 - v;
  if (Math.abs(missing) < ROUNDING) return "1";
  return missing > 0 && missing < 1e-3 ? `1 − ${short(missing, 2)}` : short(v, 4);
}

/** The place of a pair as people say it. */
export const placeOf = (pair: Pick<Pair, "layer" | "stage" | "name">) =>
  pair.layer === null ? pair.name : `layer ${pair.layer}, ${pair.stage}`;

/** A kind of mistake as people say it. */
export const kindWords = (kind: string) => kind.replaceAll("_", " ");

const TAIL = 18;

/**
 * A long name in two parts, of which the first may be cut: the end tells tensors apart, the beginning says
 * where they are from. The cut is at a separator where there is one near.
 */
export function ends(text: string): [head: string, tail: string] {
  if (text.length <= TAIL) return ["", text];
  const tail = text.slice(-TAIL);
  const separator = tail.search(/[._/-]/);
  let cut = text.length - TAIL + (separator > 0 && separator < TAIL - 6 ? separator : 0);
  if (/[\uDC00-\uDFFF]/.test(text.charAt(cut))) cut++; // not between the halves of a character
  return [text.slice(0, cut), text.slice(cut)];
}

/**
 * The first numbered part of a head ("layers.12", "layer 12"), with what stands before and after it: of a hundred tensors
 * of one kind it is all that tells them apart, so it is not cut.
 */
export function aroundNumber(head: string): [before: string, numbered: string, after: string] {
  const found = /(?<=^|[./])[A-Za-z]+[._ ](?:\d+|\{L\})(?=[._/,]|$)/.exec(head);
  if (!found) return [head, "", ""];
  const end = found.index + found[0].length;
  return [head.slice(0, found.index), found[0], head.slice(end)];
}

/** Why something failed, without the path in front when that is told beside it. */
export const reasonOf = (error: string, paths: readonly string[]) =>
  paths.reduce((text, path) => (text.startsWith(`${path}: `) ? text.slice(path.length + 2) : text), error);

interface Named {
  name: string;
  path: string;
}

const lastParts = (side: Named, parts: number) => side.name.split("/").filter(Boolean).slice(-parts).join("/") || side.path;

export const sideName = (side: Named) => lastParts(side, 1);

/** What tells two inputs apart: the last part of each, and more of them where those are the same. */
export function sideNames(a: Named, b: Named): [string, string] {
  const most = Math.max(a.name.split("/").length, b.name.split("/").length);
  for (let parts = 1; parts <= most; parts++) {
    const x = lastParts(a, parts), y = lastParts(b, parts);
    if (x !== y) return [x, y];
  }
  return [sideName(a), sideName(b)];
}

/** Seconds as "12.3 ms". */
export function duration(seconds: number, digits = 3): string {
  if (!Number.isFinite(seconds)) return "";
  if (seconds === 0) return "0";
  const size = Math.abs(seconds);
  if (size >= 3600) return `${short(seconds / 3600, digits)} h`;
  if (size >= 100) return `${short(seconds / 60, digits)} min`;
  if (size >= 1) return `${short(seconds, digits)} s`;
  if (size >= 1e-3) return `${short(seconds * 1e3, digits)} ms`;
  return `${short(seconds * 1e6, digits)} µs`;
}

/** Seconds since 1970 as "3 min ago", or the day. */
export function ago(seconds: number, now = Date.now() / 1000): string {
  const passed = Math.max(0, now - seconds);
  if (passed < 60) return "just now";
  if (passed < 3600) return `${Math.floor(passed / 60)} min ago`;
  if (passed < 86400) return `${Math.floor(passed / 3600)} h ago`;
  return new Date(seconds * 1000).toISOString().slice(0, 10);
}
