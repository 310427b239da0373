// One comparison in two tabs, or in a tab and a script: none shows the pairs of one result with the values of another,
// and none takes away what the other has kept.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { eventually, noise, open, safetensors, titles } from "./support.mjs";

let bench, left, right;
const values = (seed) => noise(15, seed);
before(async () => {
  bench = await open({ gpu: false });
  // Names that no strategy understands, one shape for all, values that tell nothing.
  const file = (name, tensors) => safetensors(bench.path(name), Object.fromEntries(Object.entries(tensors).map(([key, seed]) => [key, { shape: [3, 5], values: values(seed) }])));
  left = file("left.safetensors", { qux_1_foo: 11, qux_2_foo: 12, qux_3_foo: 13 });
  right = file("right.safetensors", { un: 51, deux: 52, trois: 53 });
});
after(() => bench.close());

const pairsOf = async (id) => (await bench.json("GET", `/comparisons/${id}/result`)).pairs;
const byHand = { match: "exact", pairs: [{ a: "qux_1_foo", b: "un" }] };

/** Elsewhere: the pairs are others afterwards. */
async function pairElsewhere(id) {
  await bench.json("PUT", `/comparisons/${id}/settings`, byHand);
  await eventually(async () => (await bench.json("GET", `/comparisons/${id}`)).status, "done");
}

test("a pair opened after the comparison was made again elsewhere has its own values under its own name", async () => {
  const id = await bench.compare(left, right, { match: "exact" });
  const page = await bench.page(`/c/${id}?group=none`, { width: 1600, expected: [/409/] });
  await page.locator(".chip.unmatched", { hasText: "6 unmatched" }).waitFor();
  const old = await pairsOf(id);
  await pairElsewhere(id);
  const now = await pairsOf(id);
  const index = old.findIndex((pair) => pair.name === "un");
  assert.notEqual(now[index].name, "un");
  await page.locator(".pair-list .row", { has: page.locator(".name", { hasText: /^un$/ }) }).click();
  await page.locator(".chip.unmatched", { hasText: "4 unmatched" }).waitFor();
  await page.getByRole("heading", { level: 2, name: now[index].name }).waitFor();
  const seed = { qux_1_foo: 11, qux_2_foo: 12, qux_3_foo: 13, deux: 52, trois: 53 }[now[index].name];
  const first = String(Math.fround(values(seed)[0]));
  await eventually(async () => (await page.locator(".stack").first().getAttribute("aria-label")).includes(first), true);
  await eventually(() => titles(page), now.map((pair) => pair.name));
  await bench.quiet(page);
});

test("a tab that one comes back to shows the newest result", async () => {
  const id = await bench.compare(left, right, { match: "exact" });
  const page = await bench.page(`/c/${id}`);
  await page.locator(".chip.unmatched", { hasText: "6 unmatched" }).waitFor();
  await pairElsewhere(id);
  await page.evaluate(() => window.dispatchEvent(new Event("focus")));
  await page.locator(".chip.unmatched", { hasText: "4 unmatched" }).waitFor();
  await bench.quiet(page);
});

test("two tabs keep what each of them changes", async () => {
  const id = await bench.compare(left, right, { match: "exact", pairs: [{ a: "qux_1_foo", b: "un" }, { a: "qux_2_foo", b: "deux" }] });
  const index = (await pairsOf(id)).findIndex((pair) => pair.a?.name === "qux_2_foo");
  const state = () => bench.json("GET", `/comparisons/${id}/state`);
  const list = await bench.page(`/c/${id}?group=none`);
  const mapping = await bench.page(`/c/${id}/pairs/${index}?view=mapping`);
  await list.locator(".pair-list .row").first().waitFor();
  await mapping.getByLabel("A axis 0, index").waitFor();
  await list.locator(".pair-list").focus();
  await list.keyboard.press("ArrowDown");
  await list.keyboard.press("Alt+ArrowDown");
  await eventually(async () => (await state()).order?.slice(0, 2), [1, 0]);
  await mapping.getByLabel("A axis 0, index").fill("2");
  await mapping.keyboard.press("Enter");
  await eventually(async () => Object.keys((await state()).mappings ?? {}), [String(index)]);
  assert.deepEqual((await state()).order.slice(0, 2), [1, 0]);
  await bench.quiet(list);
  await bench.quiet(mapping);
});

test("an order of one's own does not outlive its pairs", async () => {
  const id = await bench.compare(left, right, { match: "exact" });
  const page = await bench.page(`/c/${id}?group=none`);
  await page.locator(".pair-list .row").first().waitFor();
  await page.locator(".pair-list").focus();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Alt+ArrowDown");
  await eventually(async () => (await titles(page)).slice(0, 2), ["qux_2_foo", "qux_1_foo"]);
  await page.getByRole("button", { name: "Pair qux_1_foo by hand" }).click();
  await page.getByRole("button", { name: /^un/ }).press("Enter");
  await page.getByRole("button", { name: "Pair and compare again" }).press("Enter");
  await page.locator(".chip.unmatched", { hasText: "4 unmatched" }).waitFor();
  await eventually(() => titles(page), (await pairsOf(id)).map((pair) => pair.name));
  await bench.quiet(page);
});
