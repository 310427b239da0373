// Matching, tolerance, pairs by hand, reports out and pairs in.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { eventually, exampleDumps, noise, open, safetensors } from "./support.mjs";

let bench, a, b, left, right;
before(async () => {
  bench = await open();
  [a, b] = exampleDumps(bench);
  // Names that no strategy understands, one shape for all, values that tell nothing.
  const side = (name, seed) => Object.fromEntries([1, 2, 3].map((n) => [name(n), { shape: [3, 5], values: noise(15, seed + n) }]));
  left = safetensors(bench.path("left.safetensors"), side((n) => `qux_${n}_foo`, 10));
  right = safetensors(bench.path("right.safetensors"), side((n) => `${["", "un", "deux", "trois"][n]}`, 50));
});
after(() => bench.close());

const strategies = async (id) => (await bench.json("GET", `/comparisons/${id}/result`)).pairs.map((pair) => pair.strategy);

test("pairs by hand: dragged in the dialog, chosen with the keyboard, and taken back", async () => {
  const id = await bench.compare(left, right, { match: "exact" });
  const page = await bench.page(`/c/${id}?group=none`);
  await page.locator(".chip.unmatched", { hasText: "6 unmatched" }).waitFor();
  await page.getByRole("button", { name: "Pair by hand…" }).click();
  await page.getByRole("button", { name: /^qux_1_foo/ }).dragTo(page.getByRole("button", { name: /^trois/ }));
  await page.locator(".chip.unmatched", { hasText: "4 unmatched" }).waitFor();
  assert.deepEqual((await bench.json("GET", `/comparisons/${id}`)).settings.pairs, [{ a: "qux_1_foo", b: "trois" }]);
  await page.getByRole("button", { name: "Pair qux_2_foo by hand" }).click();
  await page.getByRole("button", { name: /^un/ }).press("Enter");
  await page.getByRole("button", { name: "Pair and compare again" }).press("Enter");
  await page.locator(".chip.unmatched", { hasText: "2 unmatched" }).waitFor();
  assert.equal((await strategies(id)).filter((name) => name === "manual").length, 2);
  await page.getByRole("button", { name: "Pair by hand…" }).click();
  await page.getByRole("button", { name: "take back" }).first().click();
  await page.locator(".chip.unmatched", { hasText: "4 unmatched" }).waitFor();
  await bench.quiet(page);
});

test("names of any length leave both sides of the dialog in sight", async () => {
  const one = (side) => safetensors(bench.path(`long_${side}.safetensors`), { [`${"of_".repeat(60)}${side}`]: { shape: [4], values: noise(4, 1) } });
  const id = await bench.compare(one("a"), one("b"), { match: "exact" });
  const page = await bench.page(`/c/${id}`);
  await page.getByRole("button", { name: "Pair by hand…" }).click();
  const dialog = page.getByRole("dialog", { name: "Pair by hand" });
  for (const width of [800, 1280]) {
    await page.setViewportSize({ width, height: 800 });
    assert.ok(await dialog.evaluate((box) => box.scrollWidth <= box.clientWidth), `at ${width} the dialog scrolls sideways`);
  }
  await bench.quiet(page);
});

test("a pair made by hand of the last two can still be taken back", async () => {
  const [one, other] = ["alone_a", "alone_b"].map((name, n) => safetensors(bench.path(`${name}.safetensors`), {
    same: { shape: [4], values: noise(4, 3) }, [["qux", "deux"][n]]: { shape: [3, 5], values: noise(15, 20 + n) },
  }));
  const id = await bench.compare(one, other, { match: "exact", pairs: [{ a: "qux", b: "deux" }] });
  const page = await bench.page(`/c/${id}`);
  await page.locator(".chip.unmatched", { hasText: "0 unmatched" }).waitFor();
  await page.getByRole("button", { name: "Pair by hand…" }).click();
  await page.getByText("No tensor is left to be paired.").waitFor();
  await page.getByRole("button", { name: "take back" }).click();
  await page.locator(".chip.unmatched", { hasText: "2 unmatched" }).waitFor();
  await bench.quiet(page);
});

test("a row without a partner dragged onto one of the other side makes a pair", async () => {
  const id = await bench.compare(left, right, { match: "exact" });
  const page = await bench.page(`/c/${id}?group=none`);
  const first = page.locator(".row.only_a").first(), other = page.locator(".row.only_b").last();
  await first.hover();
  const grip = await first.locator(".grip").boundingBox(), target = await other.boundingBox();
  await page.mouse.move(grip.x + 8, grip.y + 12);
  await page.mouse.down();
  await page.mouse.move(target.x + 200, target.y + target.height / 2, { steps: 6 });
  await page.locator(".drop.onto").waitFor();
  await page.mouse.up();
  await page.locator(".chip.unmatched", { hasText: "4 unmatched" }).waitFor();
  await bench.quiet(page);
});

/** Two dumps of four layers under names of two engines; nothing pairs by name. */
function engines() {
  const side = (name, seed) => Object.fromEntries([0, 1, 2, 3].flatMap((n) => ["q", "k"].map((what, i) => [name(n, what), { shape: [3, 5 + i], values: noise(3 * (5 + i), seed + 2 * n + i) }])));
  return [safetensors(bench.path("engine_a.safetensors"), side((n, what) => `model.layers.${n}.${what}_proj`, 1)),
    safetensors(bench.path("engine_b.safetensors"), side((n, what) => `Z${what}-${n + 1}`, 1))];
}

async function dragOnto(page, row, other, { shift = false } = {}) {
  await row.hover();
  const grip = await row.locator(".grip").boundingBox(), target = await other.boundingBox();
  await page.mouse.move(grip.x + 8, grip.y + 12);
  await page.mouse.down();
  await page.mouse.move(target.x + 200, target.y + target.height / 2, { steps: 6 });
  await page.locator(".drop.onto").waitFor();
  if (shift) await page.keyboard.down("Shift");
  await page.mouse.up();
  if (shift) await page.keyboard.up("Shift");
}

test("one pair dragged by hand is one in every layer; with Shift it is alone", async () => {
  const id = await bench.compare(...engines(), { match: "exact" });
  const page = await bench.page(`/c/${id}?group=none`);
  const row = (name) => page.locator(".row.pair", { hasText: name });
  await page.getByRole("heading", { name: "No tensor of A has a partner in B" }).waitFor();
  await dragOnto(page, row("model.layers.2.q_proj"), row("Zq-3"));
  await page.getByText("Paired in every layer: model.layers.{L}.q_proj with Zq-{L+1}").waitFor();
  await page.locator(".chip.unmatched", { hasText: "8 unmatched" }).waitFor();
  await page.locator(".coverage", { hasText: "50 %" }).waitFor();
  await dragOnto(page, row("model.layers.2.k_proj"), row("Zk-3"), { shift: true });
  await page.locator(".chip.unmatched", { hasText: "6 unmatched" }).waitFor();
  assert.deepEqual((await bench.json("GET", `/comparisons/${id}`)).settings.pairs,
    [{ a: "model.layers.{L}.q_proj", b: "Zq-{L+1}" }, { a: "model.layers.2.k_proj", b: "Zk-3" }]);
  await bench.quiet(page);
});

test("the dialog says what a pair means for the other layers", async () => {
  const id = await bench.compare(...engines(), { match: "exact" });
  const page = await bench.page(`/c/${id}`);
  await page.getByRole("button", { name: "Pair by hand…" }).click();
  await page.locator(".tensors button", { hasText: "model.layers.0.q_proj" }).click();
  await page.locator(".tensors button", { hasText: "Zq-1" }).click();
  await page.getByText("model.layers.{L}.q_proj with Zq-{L+1}").waitFor();
  await page.getByLabel("In every layer").uncheck();
  await page.getByRole("button", { name: "Pair and compare again" }).click();
  await page.locator(".chip.unmatched", { hasText: "14 unmatched" }).waitFor();
  await bench.quiet(page);
});

test("a pair made by dragging can be undone, in every layer at once", async () => {
  const before = [{ a: "model.layers.0.k_proj", b: "Zk-1" }];
  const id = await bench.compare(...engines(), { match: "exact", pairs: before });
  const page = await bench.page(`/c/${id}?group=none`);
  const row = (name) => page.locator(".row.pair", { hasText: name });
  await page.locator(".chip.unmatched", { hasText: "14 unmatched" }).waitFor();
  await dragOnto(page, row("model.layers.2.q_proj"), row("Zq-3"));
  await page.locator(".chip.unmatched", { hasText: "6 unmatched" }).waitFor();
  await page.getByRole("button", { name: "Undo" }).click();
  await page.locator(".chip.unmatched", { hasText: "14 unmatched" }).waitFor();
  assert.deepEqual((await bench.json("GET", `/comparisons/${id}`)).settings.pairs, before);
  await page.getByRole("button", { name: "Undo" }).waitFor({ state: "detached" });
  await bench.quiet(page);
});

test("the name in B is told where it is another: in the answer, in the list, and of what only B has", async () => {
  const values = (factor) => noise(40, 3).map((v) => v * factor);
  const from = safetensors(bench.path("names_a.safetensors"), { first: { shape: [4, 10], values: noise(40, 1) }, second: { shape: [4, 10], values: values(1) } });
  const to = safetensors(bench.path("names_b.safetensors"), { erst: { shape: [4, 10], values: noise(40, 1) }, zweit: { shape: [4, 10], values: values(2) }, dritt: { shape: [3], values: [1, 2, 3] } });
  const id = await bench.compare(from, to, { match: "manual", pairs: [{ a: "first", b: "erst" }, { a: "second", b: "zweit" }] });
  const page = await bench.page(`/c/${id}?group=none`);
  await page.locator(".first-card .other", { hasText: "in B zweit" }).waitFor();
  await page.locator(".row.pair", { hasText: "second" }).locator(".partner", { hasText: "zweit" }).waitFor();
  const column = async (locator) => (await locator.boundingBox()).x;
  const partner = await column(page.locator(".partner", { hasText: "zweit" }));
  assert.ok(Math.abs((await column(page.locator(".row.only_b .own"))) - partner) < 2, "what only B has stands under B's names");
  await bench.quiet(page);
});

test("by template: one row for all layers, with how it was found; what has no partner is in its place", async () => {
  const id = await bench.compare(...engines(), { match: "manual", pairs: [{ a: "model.layers.{L}.q_proj", b: "Zq-{L+1}" }] });
  const page = await bench.page(`/c/${id}?group=template`);
  const group = page.locator(".row.group", { hasText: "q_proj" });
  await group.getByText("by hand").waitFor();
  await page.locator(".row.group", { hasText: "k_proj" }).waitFor();
  await group.click();
  await page.locator(".row.pair", { hasText: "layer 2" }).click();
  await page.getByText("Paired by hand").waitFor();
  await bench.quiet(page);
});

test("too little paired is no agreement", async () => {
  const id = await bench.compare(...engines(), { match: "manual", pairs: [{ a: "model.layers.0.q_proj", b: "Zq-1" }] });
  const page = await bench.page(`/c/${id}`);
  await page.getByRole("heading", { name: "Not enough is paired to say" }).waitFor();
  assert.equal(await page.getByText("They agree").count(), 0);
  await page.getByRole("button", { name: "Change the matching" }).click();
  await page.getByLabel("Coverage needed").fill("0.1");
  await page.getByRole("dialog").getByRole("button", { name: "Compare again" }).click();
  await page.getByRole("heading", { name: "They agree" }).waitFor();
  await page.getByText("12 % of A and 12 % of B have a partner.").waitFor();
  await bench.quiet(page);
  const list = await bench.page("/");
  await list.locator(`.recent-row:has(a[href="/c/${id}"])`).getByText("agree", { exact: true }).waitFor();
  await bench.quiet(list);
});

test("a regular expression pairs what the strategies cannot", async () => {
  const mirrored = safetensors(bench.path("mirrored.safetensors"),
    Object.fromEntries([1, 2, 3].map((n) => [`${n}#`, { shape: [3, 5], values: noise(15, 80 + n) }])));
  const id = await bench.compare(left, mirrored, { match: "exact" });
  const page = await bench.page(`/c/${id}`);
  await page.getByRole("button", { name: "Settings" }).click();
  await page.getByLabel("Strategy").selectOption("regex");
  await page.getByLabel("A's name").fill("qux_(\\d+)_foo");
  await page.getByLabel("is B's").fill("\\1#");
  await page.getByRole("dialog").getByRole("button", { name: "Compare again" }).click();
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await page.locator(".chip.unmatched", { hasText: "0 unmatched" }).waitFor();
  assert.deepEqual(await strategies(id), ["regex", "regex", "regex"]);
  await bench.quiet(page);
});

test("what is wrong with a setting is said at its field", async () => {
  const id = await bench.compare(a, b);
  const page = await bench.page(`/c/${id}`, { expected: [/400/] });
  await page.locator(".pair-list").waitFor();
  await page.keyboard.press("s");
  await page.getByLabel("Similarity needed").fill("7");
  await page.getByRole("dialog").getByRole("button", { name: "Compare again" }).click();
  await page.locator(".field", { has: page.getByLabel("Similarity needed") }).getByText("a number from 0 to 1").waitFor();
  await page.getByLabel("Similarity needed").fill("0.5");
  await page.getByLabel("Strategy").selectOption("regex");
  await page.getByLabel("A's name").fill("(");
  await page.getByRole("dialog").getByRole("button", { name: "Compare again" }).click();
  await page.locator(".field", { has: page.getByLabel("A's name") }).getByText("regular expression").waitFor();
  assert.equal(await page.getByLabel("A's name").getAttribute("aria-invalid"), "true");
  await bench.quiet(page);
});

test("another tolerance judges again at once", async () => {
  const id = await bench.compare(a, b);
  const page = await bench.page(`/c/${id}`);
  await page.locator(".pair-list").waitFor();
  await page.keyboard.press("s");
  await page.getByLabel(/Own tolerance/).check();
  await page.getByRole("textbox", { name: "rtol" }).fill("0");
  await page.getByRole("textbox", { name: "atol" }).fill("100");
  await page.getByRole("dialog").getByRole("button", { name: "Compare again" }).click();
  await page.getByRole("heading", { name: "They agree" }).waitFor();
  assert.deepEqual((await bench.json("GET", `/comparisons/${id}`)).settings, { rtol: 0, atol: 100 });
  await bench.quiet(page);
});

async function download(page, name) {
  await page.getByRole("button", { name: "Export" }).click();
  const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("menuitem", { name }).click()]);
  return file.path();
}

test("reports are downloaded; the HTML one opens again by itself, the pairs are taken in again", async () => {
  const id = await bench.compare(left, right, { match: "exact" });
  const page = await bench.page(`/c/${id}`);
  const result = await bench.json("GET", `/comparisons/${id}/result`);
  assert.deepEqual(JSON.parse(readFileSync(await download(page, /^JSON/), "utf8")).summary, result.summary);
  assert.match(readFileSync(await download(page, /^CSV/), "utf8"), /^index,layer,stage,name/);
  assert.match(readFileSync(await download(page, /^JUnit/), "utf8"), /<testsuite/);

  const pairs = JSON.parse(readFileSync(await download(page, /^Pairs/), "utf8"));
  pairs.pairs.push({ a: "qux_3_foo", b: "deux" });
  await page.getByLabel("Pairs file").setInputFiles({ name: "pairs.json", mimeType: "application/json", buffer: Buffer.from(JSON.stringify(pairs)) });
  await page.locator(".chip.unmatched", { hasText: "4 unmatched" }).waitFor();
  await page.getByLabel("Pairs file").setInputFiles({ name: "no.json", mimeType: "application/json", buffer: Buffer.from("[]") });
  await page.getByText("no.json: this is not a pairs file").waitFor();
  await bench.quiet(page);

  const demo = await bench.page(`/c/${await bench.compare(a, b)}`);
  const report = await demo.context().newPage();
  await report.goto(`file://${await download(demo, /^HTML/)}`);
  await eventually(async () => (await report.locator("body").innerText()).includes("layer 1, query"), true);
  await bench.quiet(demo);
});

test("a pairs file that names nothing changes nothing, and says so", async () => {
  const id = await bench.compare(left, right, { match: "exact" });
  const page = await bench.page(`/c/${id}`, { expected: [/400/] });
  await page.locator(".chip.unmatched", { hasText: "6 unmatched" }).waitFor();
  const file = { name: "pairs.json", mimeType: "application/json", buffer: Buffer.from(JSON.stringify({ pairs: [{ a: "qux_1_foo", b: "nope" }] })) };
  await page.getByLabel("Pairs file").setInputFiles(file);
  await page.locator(".notice.bad", { hasText: "the list of pairs names 'nope', which is not in B" }).waitFor();
  await page.locator(".chip.unmatched", { hasText: "6 unmatched" }).waitFor();
  assert.deepEqual((await bench.json("GET", `/comparisons/${id}`)).settings, { match: "exact" });
  await bench.quiet(page);
});

test("the defaults drop pairs made by hand", async () => {
  const id = await bench.compare(left, right, { match: "exact", pairs: [{ a: "qux_1_foo", b: "un" }] });
  const page = await bench.page(`/c/${id}`);
  await page.locator(".chip.unmatched", { hasText: "4 unmatched" }).waitFor();
  await page.getByRole("button", { name: "Settings" }).click();
  await page.getByRole("dialog").getByText("1 pair made by hand").waitFor();
  await page.getByRole("button", { name: "Defaults" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Compare again" }).click();
  await page.getByRole("dialog").waitFor({ state: "detached" });
  assert.deepEqual((await bench.json("GET", `/comparisons/${id}`)).settings, {});
  await bench.quiet(page);
});
