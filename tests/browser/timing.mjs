// How long a person waits for the page: bench/bench_page.py runs it and reads its lines.
//
// Times are taken inside the page, in a browser that is already running, as a person's is. A first visit is one with
// nothing in the browser's cache; the bar is for those that follow. Each begins at an empty page. Where there is no
// GPU an emulated one takes 30 to 140 ms for a single frame; so all but the heatmap, which needs one, is measured with
// the browser's own software drawing.
import { execFileSync } from "node:child_process";
import { open, safetensors } from "./support.mjs";

const ROUNDS = 9;
const SIDE = 8192;

const median = (list) => [...list].sort((x, y) => x - y)[list.length >> 1];
const report = (what, list, bar) =>
  console.log([what, median(list).toFixed(1), bar, `ms, median of ${list.length}; ${list.map((ms) => ms.toFixed(0)).join(" ")}`].join("\t"));

/** From the start of the navigation to the end of the frame in which the list has rows with their numbers. */
async function firstPaint(page, address) {
  await page.goto("about:blank");
  await page.goto(address);
  return (await page.waitForFunction(() => window.shown)).jsonValue();
}

/** A page that notes when it has shown rows: the frame after the one that painted them begins when that is done. */
async function watchful(bench) {
  const page = await bench.page("/assets/icon.svg"); // some page of the same server, to have one
  await page.addInitScript(() => {
    const look = () => {
      const text = document.querySelector(".pair-list .row.pair .cell.error .number")?.textContent;
      if (text) requestAnimationFrame(() => { window.shown = performance.now(); });
      else requestAnimationFrame(look);
    };
    requestAnimationFrame(look);
  });
  return page;
}

/** From moving a slider to the values of that place. */
const moveSlider = (page, to) => page.evaluate((index) => new Promise((done) => {
  const slider = document.querySelector("input[type=range]");
  const text = () => [...document.querySelectorAll("[data-side=A]")].map((cell) => cell.textContent).join();
  const before = text();
  const begin = performance.now();
  const watcher = new MutationObserver(() => {
    if (text() === before) return;
    watcher.disconnect();
    done(performance.now() - begin);
  });
  watcher.observe(document.body, { subtree: true, childList: true, characterData: true });
  slider.value = String(index);
  slider.dispatchEvent(new Event("input", { bubbles: true }));
}), to);

/** 24 layers of 13 stages. */
async function timeList() {
  const bench = await open({ gpu: false });
  execFileSync(process.env.TDBG_EXAMPLE, ["--layers", "24", bench.path("dumps")], { stdio: "ignore" });
  const id = await bench.compare(bench.path("dumps", "a"), bench.path("dumps", "b"));
  const address = `${bench.address}/c/${id}?group=none`;
  const visits = { first: [], again: [] };
  for (let i = 0; i < ROUNDS; i++) {
    const stranger = await watchful(bench);
    visits.first.push(await firstPaint(stranger, address));
    await stranger.context().close();
  }
  const page = await watchful(bench);
  await firstPaint(page, address);
  for (let i = 0; i < ROUNDS; i++) visits.again.push(await firstPaint(page, address));
  report("first useful paint of 312 pairs, first visit", visits.first, "-");
  report("first useful paint of 312 pairs", visits.again, "<=300");

  const { first } = await bench.json("GET", `/comparisons/${id}`);
  const inspector = await bench.page(`/c/${id}/pairs/${first.index}`);
  await inspector.locator("[data-side=A]").first().waitFor();
  const moves = [];
  for (let i = 1; i <= ROUNDS; i++) moves.push(await moveSlider(inspector, i % 24));
  report("slider to new values", moves, "<=30");
  await bench.close();
}

/** Two matrices that differ in a few rows. */
function matrices(bench) {
  const values = new Float32Array(SIDE * SIDE);
  for (let i = 0, state = 1; i < values.length; i++) {
    state = (Math.imul(state, 1664525) + 1013904223) | 0;
    values[i] = state / 2147483648;
  }
  const a = safetensors(bench.path("big", "a.safetensors"), { weight: { shape: [SIDE, SIDE], values } });
  for (let row = 0; row < SIDE; row += 97) for (let column = 0; column < SIDE; column++) values[row * SIDE + column] += 1e-3;
  return [a, safetensors(bench.path("big", "b.safetensors"), { weight: { shape: [SIDE, SIDE], values } })];
}

async function timeHeatmap() {
  const bench = await open();
  const big = await bench.compare(...matrices(bench));
  const picture = await bench.page(`/c/${big}/pairs/0?view=heatmap`, { width: 1600, height: 1000 });
  await picture.waitForLoadState("networkidle");
  const host = await picture.locator(".heatmap-host").boundingBox();
  await picture.mouse.move(host.x + 200, host.y + 150);
  for (let i = 0; i < 40; i++) {
    await picture.mouse.wheel(0, -60);
    await picture.waitForTimeout(60);
  }
  await picture.waitForLoadState("networkidle");
  const tiles = await picture.evaluate(() => performance.getEntriesByType("resource")
    .filter((entry) => entry.name.includes("/tile?") && entry.requestStart > 0) // else it was cancelled
    .map((entry) => ({ level: Number(new URL(entry.name).searchParams.get("level")), ms: entry.responseEnd - entry.requestStart })));
  const top = Math.max(...tiles.map((tile) => tile.level));
  report("tile of 8192 x 8192, first look at all of it", tiles.filter((tile) => tile.level === top).map((tile) => tile.ms), "<=50");
  report("tile of 8192 x 8192, while zooming in", tiles.filter((tile) => tile.level < top).map((tile) => tile.ms), "<=50");
  await bench.close();
}

await timeList();
await timeHeatmap();
