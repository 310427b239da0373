// A comparison on screen: outcome, chart, list, keyboard, links.
import assert from "node:assert/strict";
import { appendFileSync, cpSync } from "node:fs";
import { after, before, test } from "node:test";
import { eventually, exampleDumps, noise, open, safetensors, titles } from "./support.mjs";

let bench, id, a, b;
before(async () => {
  bench = await open();
  [a, b] = exampleDumps(bench);
  id = await bench.compare(a, b);
});
after(() => bench.close());

const LAYERS = ["layer 0", "layer 1", "layer 2", "layer 3"];
const chip = (page, name) => page.locator(`.chip.${name}`);
const expandAll = (page) => page.getByRole("button", { name: "Expand all" }).click();

test("the outcome says where, how big and what it looks like, and opens it", async () => {
  const page = await bench.page(`/c/${id}`);
  const card = page.locator(".first-card");
  assert.match(await card.innerText(), /layer 1, query[\s\S]*0\.426[\s\S]*bias[\s\S]*99 %/);
  await card.getByRole("button", { name: /Open it/ }).click();
  await page.waitForURL(`**/c/${id}/pairs/14`);
  await page.goBack();
  await page.waitForURL(`**/c/${id}`);
  await bench.quiet(page);
});

test("the counts are those of the result", async () => {
  const page = await bench.page(`/c/${id}`);
  const { summary } = await bench.json("GET", `/comparisons/${id}/result`);
  for (const kind of ["diverged", "errors", "within", "identical"]) assert.equal(await chip(page, kind).textContent(), `${summary[kind]} ${kind}`);
  await bench.quiet(page);
});

test("a point of the chart says who it is, and opens the pair", async () => {
  const page = await bench.page(`/c/${id}`);
  await page.locator(".row").first().waitFor();
  const box = await page.locator(".chart canvas").boundingBox();
  // 52 pairs between the axis (50 px) and the margin (10 px): the middle of the fifteenth is the first divergence.
  const x = 50 + 14.5 * (box.width - 60) / 52;
  await page.mouse.move(box.x + x, box.y + box.height / 2);
  await page.locator(".readout", { hasText: "layer 1, query" }).waitFor();
  await page.mouse.click(box.x + x, box.y + box.height / 2);
  await page.waitForURL(`**/pairs/14`);
  await bench.quiet(page);
});

test("pairs are grouped by layer, folded; and by similarity, name or not at all", async () => {
  const page = await bench.page(`/c/${id}`);
  await eventually(() => titles(page), LAYERS);
  await page.locator(".row.group", { hasText: "layer 2" }).click();
  await eventually(async () => (await titles(page)).length, 4 + 13);
  await page.getByRole("button", { name: "Collapse all" }).click();
  await eventually(() => titles(page), LAYERS);
  await page.getByLabel("Group").selectOption("name");
  await eventually(async () => (await titles(page)).slice(0, 3), ["post_ln_pre_attn", "query", "query_final"]);
  await page.getByLabel("Group").selectOption("similarity");
  await eventually(async () => (await titles(page))[0], "no error");
  assert.match(page.url(), /group=similarity/);
  await page.getByLabel("Group").selectOption("none");
  await eventually(async () => (await titles(page))[0], "0_post_ln_pre_attn.npy");
  await bench.quiet(page);
});

test("filters by verdict and by text narrow the list, and the address holds them", async () => {
  const page = await bench.page(`/c/${id}?group=none`);
  await chip(page, "identical").click();
  await eventually(async () => (await titles(page)).length, 8);
  await page.keyboard.press("/");
  await page.keyboard.type("sliding");
  await eventually(() => titles(page), ["0_sliding.npy", "1_sliding.npy", "2_sliding.npy", "3_sliding.npy"]);
  await page.keyboard.press("Enter");
  await page.keyboard.press("/");
  await page.keyboard.type("slid"); // in place of what was typed before
  await eventually(() => page.getByRole("searchbox").inputValue(), "slid");
  const copy = await bench.page(new URL(page.url()).pathname + new URL(page.url()).search);
  await eventually(async () => (await titles(copy)).length, 4);
  await page.getByRole("searchbox").fill("/^[12]_s.*g/");
  await eventually(() => titles(page), ["1_scaling.npy", "1_sliding.npy", "2_scaling.npy", "2_sliding.npy"]);
  await page.getByRole("searchbox").fill("/(/");
  await page.getByRole("alert").getByText("regular expression").waitFor();
  await page.getByRole("searchbox").fill("no such tensor");
  await page.getByText("No pair passes the filters.").waitFor();
  await bench.quiet(copy);
  await bench.quiet(page);
});

test("an expression that backtracks without end is given up, and the page goes on", async () => {
  const name = `${"a".repeat(60)}b`;
  const [p, q] = ["p", "q"].map((side, at) => safetensors(bench.path(`${side}.safetensors`), {
    [name]: { shape: [2], values: [1, 2] }, plain: { shape: [2], values: [1, 2 + at] } }));
  const other = await bench.compare(p, q);
  const page = await bench.page(`/c/${other}?group=none`);
  const shown = () => page.locator(".toolbar .shown").textContent();
  for (const _ of [1, 2]) { // the second finds no worker that still waits
    await page.getByRole("searchbox").fill("/^(a+)+$/");
    await page.getByRole("alert").getByText("This expression takes too long: all pairs are shown.").waitFor();
    assert.equal(await shown(), "2 pairs");
    await page.getByRole("searchbox").fill("/^PL/");
    await eventually(shown, "1 of 2 pairs");
    assert.equal(await page.locator("#search-error").textContent(), "");
  }
  await page.getByRole("searchbox").fill("/^(a+)+$/");
  await page.getByRole("searchbox").fill("plain"); // before the time is up
  await eventually(shown, "1 of 2 pairs");
  await bench.quiet(page);
});

test("sorting by difference, match, name and size", async () => {
  const page = await bench.page(`/c/${id}?group=none`);
  const { pairs } = await bench.json("GET", `/comparisons/${id}/result`);
  const worst = [...pairs].sort((x, y) => y.metrics.rel_l2 - x.metrics.rel_l2 || x.index - y.index).map((pair) => pair.name);
  await page.getByLabel("Sort").selectOption("worst");
  await eventually(async () => (await titles(page)).slice(0, 5), worst.slice(0, 5));
  await page.getByLabel("Sort").selectOption("best");
  await eventually(async () => (await titles(page)).slice(0, 2), ["0_scaling.npy", "0_sliding.npy"]);
  await page.getByRole("columnheader", { name: "Name" }).getByRole("button").click();
  await eventually(async () => (await titles(page)).slice(0, 2), ["0_key_final.npy", "0_key.npy"]);
  await page.getByLabel("Sort").selectOption("size");
  const largest = pairs.reduce((x, y) => (y.metrics.count > x.metrics.count ? y : x)).name;
  await eventually(async () => (await titles(page))[0], largest);
  await bench.quiet(page);
});

test("rows dragged to another place stay there after a reload; the keyboard does it too", async () => {
  const page = await bench.page(`/c/${id}?group=none`);
  const row = (at) => page.locator(`.row[aria-rowindex="${at + 2}"]`);
  await row(0).waitFor();
  const start = await titles(page);
  await row(4).hover();
  const from = await row(4).locator(".grip").boundingBox(), to = await row(1).boundingBox();
  await page.mouse.move(from.x + 8, from.y + 10);
  await page.mouse.down();
  await page.mouse.move(to.x + 200, to.y + 20, { steps: 4 });
  await page.mouse.move(to.x + 200, to.y + 2, { steps: 4 });
  await page.mouse.up();
  const dragged = [start[0], start[4], start[1], start[2], start[3], start[5]];
  await eventually(async () => (await titles(page)).slice(0, 6), dragged);
  await eventually(async () => (await bench.json("GET", `/comparisons/${id}/state`)).order?.slice(0, 3), [0, 4, 1]);
  await page.reload();
  await eventually(async () => (await titles(page)).slice(0, 6), dragged);
  await page.locator(".pair-list").focus();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Alt+ArrowDown");
  await eventually(async () => (await titles(page)).slice(0, 2), [start[4], start[0]]);
  await page.getByRole("button", { name: "Forget my order" }).click();
  await eventually(async () => (await titles(page)).slice(0, 6), start.slice(0, 6));
  await bench.quiet(page);
});

test("the keyboard walks, opens, closes and explains itself", async () => {
  const page = await bench.page(`/c/${id}`, { width: 1600 });
  await page.locator(".pair-list").waitFor();
  await page.keyboard.press("j");
  await eventually(() => page.locator(".row.current .name").first().textContent(), "query");
  await page.keyboard.press("j");
  await eventually(() => page.locator(".row.current .name").first().textContent(), "query_final");
  await page.keyboard.press("k");
  await page.keyboard.press("Enter");
  await page.waitForURL("**/pairs/14");
  await page.keyboard.press("]");
  await page.waitForURL("**/pairs/15");
  await page.keyboard.press("[");
  await page.waitForURL("**/pairs/14");
  await page.keyboard.press("Escape");
  await page.waitForURL(`**/c/${id}`);
  await page.keyboard.press("g");
  await page.waitForURL("**/pairs/14");
  await page.keyboard.press("?");
  await page.getByRole("dialog", { name: "Keyboard" }).getByText("next diverged pair").waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await bench.quiet(page);
});

test("with room the pair stands beside the list, without it the pair takes its place", async () => {
  const wide = await bench.page(`/c/${id}/pairs/14`, { width: 1600 });
  await wide.locator(".inspector-pane").waitFor();
  assert.ok(await wide.locator(".list-pane").isVisible());
  const narrow = await bench.page(`/c/${id}/pairs/14`, { width: 1000 });
  await narrow.locator(".inspector-pane").waitFor();
  assert.ok(!(await narrow.locator(".list-pane").isVisible()));
  await narrow.getByRole("link", { name: "All pairs" }).click();
  await eventually(() => narrow.locator(".list-pane").isVisible(), true);
  await bench.quiet(wide);
  await bench.quiet(narrow);
});

test("a link to a pair shows it in the list too", async () => {
  const page = await bench.page(`/c/${id}/pairs/14`, { width: 1600 });
  await eventually(() => page.locator(".row.opened.current .name").first().textContent(), "query");
  await bench.quiet(page);
});

test("the focus goes back where it was when a dialog or a menu closes", async () => {
  const page = await bench.page(`/c/${id}`);
  const focused = () => page.evaluate(() => document.activeElement.getAttribute("aria-label") ?? document.activeElement.textContent.trim());
  for (const name of ["Settings", "Keyboard help"]) {
    await page.getByRole("button", { name }).focus();
    await page.keyboard.press("Enter");
    await page.getByRole("dialog").waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await eventually(focused, name);
  }
  await page.getByRole("button", { name: "Export" }).focus();
  await page.keyboard.press("Enter");
  await page.getByRole("menu").waitFor();
  await page.keyboard.press("Tab");
  await page.getByRole("menu").waitFor({ state: "detached" });
  await eventually(focused, "Light or dark");
  await bench.quiet(page);
});

test("what was left open stays with its comparison", async () => {
  const other = await bench.compare(b, a);
  const page = await bench.page("/");
  const visit = async (which) => {
    await page.locator(`.recent-row a[href="/c/${which}"]`).click();
    await page.locator(".pair-list").waitFor();
  };
  await visit(id);
  await page.keyboard.press("s");
  await page.getByRole("dialog", { name: "Settings" }).waitFor();
  await page.goBack();
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await visit(other);
  assert.equal(await page.getByRole("dialog").count(), 0);
  await bench.quiet(page);
});

test("Escape with no pair open leaves nothing behind to go back to", async () => {
  const page = await bench.page("/");
  await page.locator(`a[href="/c/${id}"]`).click();
  await page.locator(".pair-list").waitFor();
  const entries = await page.evaluate(() => history.length);
  for (let n = 0; n < 3; n++) await page.keyboard.press("Escape");
  assert.equal(await page.evaluate(() => history.length), entries);
  await bench.quiet(page);
});

test("long names: a row that no layer heads tells its layer, and the header the end of both names", async () => {
  const name = (layer) => `base_model.model.model.language_model.layers.${layer}.self_attn.q_proj.weight`;
  const [one, other] = ["reference-dequantised", "port-tensor-parallel"].map((kind, seed) => safetensors(
    bench.path(`a-rather-long-name-of-a-model-as-hubs-have-them-${kind}.safetensors`),
    Object.fromEntries([0, 7].map((layer) => [name(layer), { shape: [8, 8], values: noise(64, layer + seed) }]))));
  const long = await bench.compare(one, other);
  const page = await bench.page(`/c/${long}?group=none`);
  await eventually(() => titles(page), ["layer 0, self_attn.q_proj.weight", "layer 7, self_attn.q_proj.weight"]);
  assert.match(await page.locator(".row a .name").first().getAttribute("title"), /^base_model.*layers\.0\.self_attn/);
  const cut = await page.locator(".sides .name-tail").evaluateAll((tails) => tails.map((tail) => tail.scrollWidth > tail.clientWidth));
  assert.deepEqual(cut, [false, false]);
  await bench.quiet(page);
});

test("a name that has room is not cut, whatever parts it has", async () => {
  const names = ["gate_proj.weight", "l.gate_proj.weights", "ab.cdefghijklmnopqrstu", "model.layers.3.mlp.gate_proj.weight", "layers.12.mlp.up_proj.weight"];
  const sides = ["x", "y"].map((side, seed) => safetensors(bench.path(`room_${side}.safetensors`),
    Object.fromEntries(names.map((name, n) => [name, { shape: [4], values: noise(4, n + seed) }]))));
  const page = await bench.page(`/c/${await bench.compare(...sides, { match: "exact" })}?group=none`);
  await page.locator(".row.pair").nth(names.length - 1).waitFor();
  const cut = await page.locator(".row.pair .name > span").evaluateAll((parts) => parts.filter((part) => part.scrollWidth > part.clientWidth).map((part) => part.textContent));
  assert.deepEqual(cut, []);
  const tag = await page.locator(".row.pair .tag").evaluate((one) => one.getBoundingClientRect().right <= one.closest(".cell").getBoundingClientRect().right);
  assert.ok(tag, "the mark of the first divergence is whole");
  await bench.quiet(page);
});

test("an input that changes on disk is noticed, and compared again", async () => {
  const copy = bench.path("moving");
  cpSync(a, copy, { recursive: true });
  const changing = await bench.compare(copy, b);
  const stale = safetensors(bench.path("moving", "0_scaling.safetensors"), { x: { shape: [2], values: [1, 2] } });
  appendFileSync(stale, "");
  const page = await bench.page(`/c/${changing}`);
  await page.getByText("moving has changed since this was compared").waitFor();
  await page.getByRole("button", { name: "Compare again" }).click();
  await page.getByText("has changed").waitFor({ state: "detached" });
  await bench.quiet(page);
});

test("an input that changes while a pair is open: the way to compare again is there too", async () => {
  const copy = bench.path("changing");
  cpSync(a, copy, { recursive: true });
  const changing = await bench.compare(copy, b);
  const page = await bench.page(`/c/${changing}`, { expected: [/409/] });
  await page.locator(".pair-list").waitFor();
  const change = async (name) => {
    safetensors(bench.path("changing", name), { x: { shape: [2], values: [1, 2] } });
    await eventually(async () => (await bench.json("GET", `/comparisons/${changing}`)).a.changed, true); // it looks now and then
  };
  await change("0_scaling.safetensors");
  await page.keyboard.press("g");
  const pane = page.locator(".inspector-pane");
  await pane.getByRole("alert").getByText("changed since it was compared").waitFor();
  await pane.locator(".banner").waitFor();
  await pane.getByRole("button", { name: "Compare again" }).click();
  await pane.locator(".stack").first().waitFor();
  await change("1_scaling.safetensors");
  await page.reload();
  await pane.getByText("changing has changed since").waitFor();
  await pane.locator(".banner").getByRole("button", { name: "Compare again" }).click();
  await pane.locator(".stack").first().waitFor();
  await bench.quiet(page);
});

test("many notes fold, so that the list stays in sight", async () => {
  const result = await bench.json("GET", `/comparisons/${id}/result`);
  const notes = Array.from({ length: 9 }, (_, n) => `note ${n}: ${"something about the dumps that takes a while to say ".repeat(4)}`);
  const page = await bench.page("/");
  await page.route(`**/c/${id}`, async (route) => route.fulfill({ response: await page.request.get(bench.address) })); // nothing to carry
  await page.route(`**/comparisons/${id}/result`, (route) => route.fulfill({ json: { ...result, notes } }));
  await page.goto(`${bench.address}/c/${id}`);
  const box = page.locator(".notes");
  await box.waitFor();
  assert.ok((await box.boundingBox()).height < 140);
  await box.getByText("7 more notes").click();
  await box.getByText("note 8").waitFor();
  await bench.quiet(page);
});

test("one under way shows how far it is, can be stopped, and turns into its result by itself", async () => {
  const now = await bench.json("GET", `/comparisons/${id}`);
  const running = (part) => ({ ...now, status: "running", summary: null, first: null, progress: { done: part, total: 100 } });
  const event = (comparison) => `event: change\ndata: ${JSON.stringify(comparison)}\n\n`;
  // A comparison that takes as long as the test wants: only its state is made up.
  let finish, done = 0;
  const finished = new Promise((resolve) => (finish = resolve)); // for every stream: the page may ask for another one
  const page = await bench.page("/");
  await page.route(`**/c/${id}`, async (route) => route.fulfill({ response: await page.request.get(bench.address) })); // nothing to carry
  await page.route(`**/comparisons/${id}`, (route) => route.fulfill({ json: running(done) }));
  await page.route(`**/comparisons/${id}/cancel`, (route) => {
    done = 42;
    return route.fulfill({ json: running(done) });
  });
  await page.route(`**/comparisons/${id}/events`, async (route) => {
    await finished;
    await route.fulfill({ contentType: "text/event-stream", body: event(running(done)) + event(now) });
  });
  await page.goto(`${bench.address}/c/${id}`);
  await page.getByRole("heading", { name: "Comparing" }).waitFor();
  await page.getByRole("progressbar").waitFor();
  await page.getByRole("status").getByText("0 % done").waitFor();
  await page.getByRole("button", { name: "Cancel" }).click();
  await eventually(() => done, 42);
  await page.getByText("42 % done").waitFor();
  finish();
  await page.getByRole("heading", { name: "layer 1, query" }).waitFor();
  await bench.quiet(page);
});

test("500 pairs: only what is in sight exists, and the end is a scroll away", async () => {
  const many = (seed) => Object.fromEntries(Array.from({ length: 500 }, (_, n) =>
    [`model.layers.${Math.floor(n / 10)}.block.part_${n % 10}.weight`, { shape: [4, 8], values: noise(32, n + 1).map((x) => x * (n > 250 ? seed : 1)) }]));
  const large = await bench.compare(safetensors(bench.path("many_a.safetensors"), many(1)), safetensors(bench.path("many_b.safetensors"), many(1.5)));
  const page = await bench.page(`/c/${large}?group=none`);
  await page.locator(".row").first().waitFor();
  assert.equal(await page.locator(".pair-list").getAttribute("aria-rowcount"), "501");
  assert.ok((await page.locator(".row").count()) < 90);
  await page.locator(".list-pane").evaluate((pane) => (pane.scrollTop = pane.scrollHeight));
  await page.locator('.row[aria-rowindex="501"]').waitFor();
  assert.ok((await page.locator(".row").count()) < 90);
  const pointed = () => page.locator(".pair-list").evaluate((list) =>
    document.getElementById(list.getAttribute("aria-activedescendant"))?.getAttribute("aria-rowindex"));
  await page.keyboard.press("j");
  await page.locator('.row[aria-rowindex="252"]').waitFor(); // the list has come to the row, with those around it
  assert.equal(await pointed(), "253");
  await page.locator(".list-pane").evaluate((pane) => (pane.scrollTop = 0));
  await page.locator('.row[aria-rowindex="2"]').waitFor();
  assert.equal(await pointed(), "253", "out of sight, and there");
  await bench.quiet(page);
});

test("where no two values are both finite, no difference of zero is shown", async () => {
  const side = (x) => ({ "layers.0.lost": { shape: [4, 8], values: noise(32, 1).map((value) => value * x) }, "layers.0.kept": { shape: [8], values: noise(8, 2) } });
  const lost = await bench.compare(safetensors(bench.path("lost_a.safetensors"), side(1)), safetensors(bench.path("lost_b.safetensors"), side(NaN)));
  const page = await bench.page(`/c/${lost}?group=none`);
  const cell = (name, what) => page.locator(".row", { hasText: name }).locator(`.cell.${what}`);
  await eventually(async () => [await cell("kept", "max").innerText(), await cell("kept", "cosine").innerText()], ["0", "1"]);
  assert.deepEqual([await cell("lost", "max").innerText(), await cell("lost", "cosine").innerText()], ["", ""]);
  await page.locator(".row", { hasText: "lost" }).click();
  await page.getByText("nothing to measure").waitFor();
  await bench.quiet(page);
});

test("NaN and infinities at other places, or of another sign, are no error of zero", async () => {
  const side = (at, sign) => ({ "layers.0.moved": { shape: [8], values: noise(8, 1).with(at, NaN) }, "layers.0.turned": { shape: [8], values: noise(8, 2).with(3, sign * Infinity) } });
  const lost = await bench.compare(safetensors(bench.path("moved_a.safetensors"), side(1, 1)), safetensors(bench.path("moved_b.safetensors"), side(5, -1)));
  const page = await bench.page(`/c/${lost}?group=none`);
  const cells = (name) => page.locator(".row", { hasText: name }).locator(".cell:is(.error, .floor, .max, .cosine)").allInnerTexts();
  await eventually(() => cells("moved"), ["NaN", "", "NaN", ""]);
  await eventually(() => cells("turned"), ["inf", "", "inf", ""]);
  await page.locator(".first-card").getByText("at other places").waitFor();
  await page.getByLabel("Group").selectOption("similarity");
  await page.locator(".row.group", { hasText: "NaN or infinity on one side" }).waitFor();
  await bench.quiet(page);
});

test("names of any length leave the page as wide as the window", async () => {
  const long = (letter) => bench.path(`${"a_run_with_a_long_name_".repeat(5)}${letter}.safetensors`);
  const tensors = { x: { shape: [4], values: noise(4, 1) } };
  const wide = await bench.compare(safetensors(long("a"), tensors), safetensors(long("b"), tensors));
  for (const address of [`/c/${wide}`, `/c/${wide}/pairs/0`, `/run?path=${encodeURIComponent(long("c"))}`]) {
    const page = await bench.page(address, { expected: [/404/] });
    await page.locator(".topbar .tools").waitFor();
    for (const width of [800, 1280, 1600]) {
      await page.setViewportSize({ width, height: 800 });
      await eventually(() => page.evaluate(() => document.documentElement.scrollWidth), width);
      const tools = await page.locator(".tools").boundingBox();
      assert.ok(tools.x + tools.width <= width, `${address} at ${width}: the tools end at ${tools.x + tools.width}`);
    }
    await bench.quiet(page);
  }
});

test("a comparison that is not there says so", async () => {
  const page = await bench.page("/c/0123456789abcdef", { expected: [/404/] });
  await page.getByRole("heading", { name: "This comparison cannot be shown" }).waitFor();
  await bench.quiet(page);
});
