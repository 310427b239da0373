// Files as one upload, read back by GNU tar.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { tarOf } from "../src/views/start/tar";

const entry = (path, text = path) => ({ path, file: new File([text], "x") });
const read = async (entries, ...options) =>
  execFileSync("tar", ["--quoting-style=literal", ...options], { input: Buffer.from(await tarOf("x", entries).arrayBuffer()), encoding: "utf8" });

test("names of every length, and of all letters", async () => {
  // Around 100 bytes a plain header ends, around 90 and 990 the length of a record gets another digit.
  const lengths = [1, 99, 100, 101, ...Array.from({ length: 24 }, (_, i) => 80 + i), ...Array.from({ length: 24 }, (_, i) => 980 + i)];
  const names = [...lengths.map((n, i) => `${i}_`.padEnd(n, "n")), "ä/ö/層_0.npy", "with blank/a b"];
  assert.deepEqual((await read(names.map((name) => entry(name)), "-t")).trimEnd().split("\n"), names);
});

test("contents of every length lie at their place", async () => {
  const texts = [0, 1, 511, 512, 513, 5000].map((n) => "c".repeat(n) + "|");
  const names = texts.map((_, i) => (i % 2 ? `${i}` : `${i}`.padEnd(200, "n")));
  const entries = texts.map((text, i) => entry(names[i], text));
  for (const [i, name] of names.entries()) assert.equal(await read(entries, "-xO", name), texts[i]);
});
