// The dashboard of recorded runs: what it shows, that it follows a run that goes on, and how soon.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";
import { eventually, open } from "./support.mjs";

let bench;
const writers = [];
before(async () => (bench = await open()));
after(async () => {
  for (const child of writers) child.kill("SIGKILL");
  await bench.close();
});

/** A run that grows as it is told, by another process; see write_run.py. */
async function record(name) {
  const folder = bench.path("runs", name);
  const child = spawn("/usr/bin/python3", [join(process.env.TDBG_ROOT, "tests/browser/write_run.py"), folder], { stdio: ["pipe", "pipe", "inherit"] });
  writers.push(child);
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const told = async () => assert.equal((await lines.next()).value, "ok");
  await told();
  const step = async (rows) => {
    child.stdin.write(JSON.stringify(rows) + "\n");
    await told();
  };
  const end = () => step({ end: true });
  const kill = () => new Promise((resolve) => {
    child.on("exit", resolve);
    child.kill("SIGKILL");
  });
  return { folder, step, end, kill };
}

const address = (run) => `/run?path=${encodeURIComponent(run.folder)}`;
const field = (page, name) => page.locator(`[data-field=${name}]`).innerText();
const ms = (n) => n * 1e6;
const training = (n, more = {}) => ({
  number: n,
  scalars: { "train/loss": 3 * 0.9 ** n, lr: 1e-3, ...more.scalars },
  tensors: { "fc.weight.grad": [1e-3, 2e-3, -1e-3], "head.weight.grad": [0.1, -0.2], ...more.tensors },
  spans: [["model/fc", 0, ms(2)], ["model/head", ms(2), ms(10)], ["model", 0, ms(11)]],
});

test("the list leads to a run; scalars, layers and gradients are there", async () => {
  const run = await record("first");
  for (let n = 0; n < 12; n++) await run.step(training(n));
  await run.end();
  const page = await bench.page("/runs");
  await page.getByRole("link", { name: "runs/first" }).click();
  await page.getByRole("heading", { name: "Nothing found" }).waitFor();
  assert.equal(await field(page, "step"), "11");
  await page.locator(".run-state.ended").waitFor();
  await page.getByRole("img", { name: "train/loss over 12 points, now 0.9414" }).waitFor();
  const layers = await page.locator(".layer-table tbody tr").evaluateAll((rows) => rows.map((row) => [row.cells[0].textContent, row.cells[4].textContent]));
  assert.deepEqual(layers, [["model/head", "96 ms"], ["model/fc", "24 ms"], ["model", "12 ms"]]);
  assert.equal(await page.locator(".strips li").count(), 2);
  assert.equal(await page.title(), "runs/first · tdbg");
  await bench.quiet(page);
});

test("a live run is followed within half a second", async () => {
  const run = await record("live");
  await run.step(training(0));
  const page = await bench.page(address(run));
  await eventually(() => field(page, "step"), "0");
  await page.evaluate(() => {
    window.shownAt = {};
    const step = document.querySelector("[data-field=step]");
    new MutationObserver(() => (window.shownAt[step.textContent] = Date.now())).observe(step, { childList: true, characterData: true, subtree: true });
  });
  const delays = [];
  for (let n = 1; n <= 20; n++) {
    await run.step(training(n));
    const written = Date.now();
    await eventually(() => field(page, "step"), String(n));
    delays.push((await page.evaluate((at) => window.shownAt[at], String(n))) - written);
    await new Promise((wait) => setTimeout(wait, 37)); // not in step with the server's own clock
  }
  delays.sort((x, y) => x - y);
  console.log(`delay of a live step, ms: median ${delays[10]}, most ${delays.at(-1)}`);
  assert.ok(delays[10] < 500, `half of the steps took ${delays[10]} ms and more`); // the others may meet a busy machine
  await page.locator(".run-state.running").waitFor();
  await page.getByRole("img", { name: /^train\/loss over 21 points/ }).waitFor();
  await run.kill();
  await page.locator(".run-state.broken-off").waitFor();
  await bench.quiet(page);
});

test("alerts come up while the run goes on, the first offence on top", async () => {
  const run = await record("broken");
  await run.step(training(0));
  const page = await bench.page(address(run));
  await page.getByRole("heading", { name: "Nothing found" }).waitFor();
  await run.step(training(1, { tensors: { "layers.1.output": [1, "nan", "nan"] }, scalars: { "train/loss": "nan" } }));
  await page.getByRole("heading", { name: "layers.1.output" }).waitFor();
  const card = page.getByRole("region", { name: "Alerts" });
  assert.match(await card.innerText(), /First alert, at step 1/);
  assert.match(await card.innerText(), /NaN in a tensor: NaN values 2, above 0/);
  assert.match(await card.locator(".alert-list").innerText(), /train\/loss[\s\S]*scalar-nan/);
  await page.getByText("2 alerts", { exact: true }).waitFor();
  await run.end();
  await page.locator(".run-state.ended").waitFor();
  await bench.quiet(page);
});

test("the scale is logarithmic on a key, and the address keeps it", async () => {
  const run = await record("scale");
  for (let n = 0; n < 5; n++) await run.step({ scalars: { loss: 10 ** -n } });
  await run.end();
  const page = await bench.page(address(run));
  const line = () => page.locator(".run-plot .line").first().getAttribute("d");
  await page.getByRole("img", { name: /^loss over/ }).waitFor();
  const linear = await line();
  await page.keyboard.press("l");
  await page.getByRole("button", { name: "log", pressed: true }).waitFor();
  assert.notEqual(await line(), linear);
  const ys = (await line()).match(/ [\d.]+/g).map(Number);
  for (let n = 2; n < ys.length; n++) assert.ok(Math.abs(ys[n] - ys[n - 1] - (ys[1] - ys[0])) < 0.3, "powers of ten lie on a straight line");
  await page.reload();
  await page.getByRole("button", { name: "log", pressed: true }).waitFor();
  await bench.quiet(page);
});

/** tests/livemodel.py: a model that records itself through the library, `pause` seconds a layer. */
async function live(name, steps, pause) {
  const folder = bench.path("runs", name), root = process.env.TDBG_ROOT;
  const child = spawn("/usr/bin/python3", [join(root, "tests/livemodel.py"), folder, String(steps)],
    { stdio: ["ignore", "ignore", "inherit"], env: { ...process.env, TDBG_LIBRARY: join(process.env.TDBG, "../libtdbg.so"), PAUSE: String(pause) } });
  writers.push(child);
  await eventually(() => existsSync(join(folder, "control")), true);
  return { folder, ended: new Promise((resolve) => child.on("exit", resolve)) };
}

test("a live model stops at a breakpoint, steps, and goes on", async () => {
  const run = await live("model", 400, 0.02);
  const page = await bench.page(address(run));
  await page.getByLabel("Tensors to stop at").fill("layers.2.output");
  await page.getByRole("button", { name: "Break", exact: true }).click();
  const held = page.locator(".held");
  await held.getByText("layers.2.output").waitFor();
  await page.locator(".run-state.stopped").waitFor();
  let step;
  await eventually(async () => { // a model that is held records no step; what it recorded before may still come
    step = await field(page, "step");
    await page.waitForTimeout(500);
    return (await field(page, "step")) === step;
  }, true);
  await page.keyboard.press("s");
  await held.getByText("layers.2.output").waitFor({ state: "detached" });
  await held.locator("b").waitFor();
  await page.getByRole("button", { name: /Delete breakpoint/ }).click();
  await page.getByRole("button", { name: /^Continue/ }).click();
  await page.locator(".run-state.running").waitFor();
  await eventually(async () => (await field(page, "step")) !== step, true);
  await page.getByRole("button", { name: "Let go" }).click();
  await page.getByText("holds the run while this page is open").waitFor();
  await bench.quiet(page);
});

test("a model that is held goes on when the page is closed", async () => {
  const run = await live("left", 400, 0.02);
  const page = await bench.page(address(run));
  await page.getByLabel("Condition").fill("absmax > 0");
  await page.getByRole("button", { name: "Break", exact: true }).click();
  await page.locator(".held").waitFor();
  await bench.quiet(page);
  assert.equal(await run.ended, 0);
});

test("the tensors of a run are explored from its dashboard", async () => {
  const run = await live("values", 3, 0.3);
  assert.equal(await run.ended, 0);
  const page = await bench.page(address(run));
  await page.getByRole("button", { name: "Explore tensors" }).click();
  await page.waitForURL(/\/c\/[0-9a-f]+$/);
  await page.getByText("layers.2.output").first().waitFor();
  await bench.quiet(page);
});

test("what is no run is refused in words", async () => {
  const page = await bench.page(`/run?path=${encodeURIComponent(bench.path("runs"))}`, { expected: [/404/] });
  await page.getByText("no recorded run in").waitFor();
  await page.getByRole("link", { name: "Other runs" }).click();
  await page.getByRole("heading", { name: "Recorded runs" }).waitFor();
  await bench.quiet(page);
});

test("narrow and dark, nothing runs out of the window", async () => {
  const run = await record("narrow");
  for (let n = 0; n < 3; n++) await run.step(training(n, { tensors: { "a.very.long.name.of.a.module.in.a.deep.network.layers.17.attention.output": ["nan", 1] } }));
  await run.end();
  const page = await bench.page(address(run), { width: 390, height: 800, dark: true });
  await page.locator(".strips li").first().waitFor();
  assert.ok(await page.evaluate(() => document.querySelector(".pane").scrollWidth <= document.querySelector(".pane").clientWidth));
  await bench.quiet(page);
});
