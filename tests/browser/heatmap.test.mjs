// The heatmap, held against the values by its pixels: a colour on screen is looked up in the legend beside it.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { eventually, noise, open, safetensors } from "./support.mjs";

const rows = 300;
const columns = 520;
const ramp = Array.from({ length: rows * columns }, (_, i) => (i % columns) / columns - 0.5);
const far = 10 * columns + 40; // where the two differ
const flawed = noise(64 * 96, 2).with(10 * 96 + 20, NaN);

let bench, id, indexOf;
before(async () => {
  bench = await open();
  const tensors = { ramp: { shape: [rows, columns], values: ramp }, flawed: { shape: [64, 96], values: flawed }, stack: { shape: [3, 20, 30], values: noise(1800, 5) } };
  const a = safetensors(bench.path("a.safetensors"), tensors);
  const b = safetensors(bench.path("b.safetensors"), { ...tensors, ramp: { shape: [rows, columns], values: ramp.with(far, ramp[far] + 1) } });
  id = await bench.compare(a, b);
  const { pairs } = await bench.json("GET", `/comparisons/${id}/result`);
  indexOf = (name) => pairs.find((pair) => pair.name === name).index;
});
after(() => bench.close());

async function heatmap(name, query = "") {
  const page = await bench.page(`/c/${id}/pairs/${indexOf(name)}?view=heatmap&${query}`);
  await settled(page);
  return page;
}

const settled = (page) => page.waitForFunction(() => document.querySelector(".heatmap-host")?.dataset.busy === "false");

/** The colour of the picture at a point of it. */
const pixel = (page, x, y) => page.evaluate(([px, py]) => {
  const source = document.querySelector(".heatmap-host canvas");
  const copy = document.createElement("canvas");
  copy.width = copy.height = 1;
  const c = copy.getContext("2d");
  c.drawImage(source, Math.floor(px * devicePixelRatio), Math.floor(py * devicePixelRatio), 1, 1, 0, 0, 1, 1);
  return [...c.getImageData(0, 0, 1, 1).data];
}, [x, y]);

/** What the n-th legend shows at a share of its length. */
const legendAt = (page, n, share) => page.evaluate(([which, at]) => {
  const bar = document.querySelectorAll(".ramp-bar canvas")[which];
  const copy = document.createElement("canvas");
  copy.width = copy.height = 1;
  const c = copy.getContext("2d"); // a copy: reading a canvas back often makes the browser complain
  c.drawImage(bar, Math.round(at * (bar.width - 1)), 0, 1, 1, 0, 0, 1, 1);
  return [...c.getImageData(0, 0, 1, 1).data];
}, [n, share]);

/** Until the picture has the colour there that the legend has at that share: either is drawn with the next frame. */
const showsColour = (page, x, y, share, tolerance = 3) =>
  eventually(async () => {
    const wanted = await legendAt(page, 0, share), got = await pixel(page, x, y);
    return got.every((channel, i) => Math.abs(channel - wanted[i]) <= tolerance) || `${got} is not ${wanted}`;
  }, true);

/** Points at the picture and reads which element is there. */
async function point(page, x, y) {
  const box = await page.locator(".heatmap-host").boundingBox();
  await page.mouse.move(box.x + x, box.y + y);
  const line = page.locator(".cursor-line");
  await page.waitForFunction(() => /A -?\d/.test(document.querySelector(".cursor-line").textContent));
  const [, place, a] = /\[([\d, ]+)\].*?A (-?[\d.e-]+)/s.exec(await line.innerText());
  return { at: place.split(", ").map(Number), a: Number(a) };
}

test("colours are those of the legend for the values that were written", async () => {
  const page = await heatmap("ramp", "range=-0.5,0.5&reduce=mean");
  for (const [x, y] of [[60, 60], [120, 90], [200, 150], [300, 100]]) {
    const { at } = await point(page, x, y);
    const value = ramp[at[0] * columns + at[1]];
    // Zoomed out, a cell is the mean of its neighbours: within a cell or two of the value.
    await showsColour(page, x, y, value + 0.5, 12);
  }
  await bench.quiet(page);
});

test("zoomed in to single values, exactly; linear, symlog and log", async () => {
  const page = await heatmap("ramp", "range=-0.5,0.5");
  const box = await page.locator(".heatmap-host").boundingBox();
  await page.mouse.move(box.x + 150, box.y + 80);
  for (let i = 0; i < 30; i++) await page.mouse.wheel(0, -120);
  await eventually(() => page.locator(".heatmap-host").getAttribute("data-level"), "0");
  await settled(page);
  const { at, a } = await point(page, 151, 82);
  const value = Math.fround(ramp[at[0] * columns + at[1]]);
  assert.equal(a, value);
  await showsColour(page, 151, 82, value + 0.5);
  const knee = 0.5e-4;
  await page.getByLabel("scale", { exact: true }).selectOption("symlog");
  const bent = Math.sign(value) * Math.log1p(Math.abs(value) / knee) / Math.log1p(0.5 / knee);
  await showsColour(page, 151, 82, 0.5 + 0.5 * bent);
  await page.getByLabel("scale", { exact: true }).selectOption("log");
  await page.getByLabel("Colours of A, B").getByText("5.0e-5").waitFor();
  const share = Math.log(Math.abs(value) / knee) / Math.log(0.5 / knee);
  await showsColour(page, 151, 82, share);
  await bench.quiet(page);
});

test("the difference has a pane of its own, which shows the one element that differs", async () => {
  const page = await heatmap("ramp", "reduce=max");
  await page.locator(".worst li button").first().click();
  await settled(page);
  await page.waitForURL(/at=10%2C40/);
  const size = await page.locator(".heatmap-host").boundingBox();
  await eventually(() => page.locator(".heatmap-host").getAttribute("data-level"), "0");
  // The element is in sight in all panes; in the last it is the only one with a colour.
  const coloured = () => page.evaluate(([width]) => {
    const source = document.querySelector(".heatmap-host canvas");
    const copy = document.createElement("canvas");
    [copy.width, copy.height] = [source.width, source.height];
    const c = copy.getContext("2d");
    c.drawImage(source, 0, 0);
    const from = Math.ceil(((width - 46 - 20) / 3) * 2 + 46 + 22);
    const { data } = c.getImageData(from, 22, source.width - from - 2, source.height - 42);
    let deep = 0;
    for (let i = 0; i < data.length; i += 4) if (data[i + 3] === 255 && data[i] - data[i + 2] > 60) deep++;
    return deep;
  }, [size.width]);
  await eventually(async () => { // tiles of the new place may be on their way
    const scale = Math.sqrt(await coloured());
    return (scale >= 11 && scale <= 13) || `one cell of 12 x 12 pixels, not ${scale} x ${scale}`;
  }, true);
  await bench.quiet(page);
});

test("a legend has its title, its ends and its scale in a line", async () => {
  const page = await heatmap("ramp");
  for (const legend of await page.locator(".ramps [role=group]").all()) {
    const boxes = await Promise.all(["span >> nth=0", "input >> nth=0", ".ramp-bar", "input >> nth=1"].map((part) => legend.locator(part).boundingBox()));
    const own = await legend.boundingBox();
    for (const [at, box] of boxes.entries()) {
      assert.ok(box.y >= own.y && box.y + box.height <= own.y + own.height, `part ${at} is outside`);
      assert.ok(at === 0 || box.x >= boxes[at - 1].x + boxes[at - 1].width, `part ${at} overlaps the one before`);
    }
    assert.ok(boxes[2].width > 100, "the scale is wide enough to be read");
  }
  await bench.quiet(page);
});

test("NaN has a colour of its own", async () => {
  const page = await heatmap("flawed", "at=10,20");
  const size = await page.locator(".heatmap-host").boundingBox();
  const pane = (size.width - 46 - 20) / 3;
  const scale = pane / 96;
  const x = 46 + 20.5 * scale;
  const y = 20 + 10.5 * scale;
  await eventually(async () => (await pixel(page, x, y)).slice(0, 3), [214, 24, 160]);
  const other = await pixel(page, x + 3 * scale, y);
  assert.notDeepEqual(other.slice(0, 3), [214, 24, 160]);
  await bench.quiet(page);
});

test("the keyboard moves the cursor, zooms, and takes the sliders along", async () => {
  const page = await heatmap("stack");
  await page.getByRole("slider", { name: "axis 0" }).waitFor();
  assert.equal(await page.getByRole("slider").count(), 1);
  await page.locator(".heatmap-host").focus();
  for (const key of ["ArrowRight", "ArrowRight", "ArrowDown"]) await page.keyboard.press(key);
  const cursor = async () => JSON.parse(/\[[\d, ]+\]/.exec(await page.locator(".cursor-line").innerText())?.[0] ?? "null");
  await eventually(async () => (await cursor())?.length, 3);
  const p = await cursor(), q = [p[0], p[1], p[2] + 1];
  await page.keyboard.press("ArrowRight");
  await eventually(cursor, q);
  await page.keyboard.press("+");
  await page.keyboard.press("Enter");
  await page.waitForURL(new RegExp(`at=${q.join("%2C")}`));
  await bench.quiet(page);
});

test("axes are chosen, swapped, and the tensor folded", async () => {
  const page = await heatmap("stack");
  await page.getByLabel("rows", { exact: true }).selectOption("0");
  await settled(page);
  await page.getByRole("application", { name: /3 rows, 30 columns/ }).waitFor();
  await page.getByLabel("flattened").check();
  await page.getByLabel("width").fill("60");
  await page.keyboard.press("Enter");
  await page.getByRole("application", { name: /30 rows, 60 columns/ }).waitFor();
  await settled(page);
  await page.waitForURL(/fold=60/);
  await bench.quiet(page);
});

/** How many points of the picture have a colour. */
const pointsOf = (page, [r, g, b]) => page.evaluate(([red, green, blue]) => {
  const source = document.querySelector(".heatmap-host canvas");
  const copy = document.createElement("canvas");
  [copy.width, copy.height] = [source.width, source.height];
  const c = copy.getContext("2d");
  c.drawImage(source, 0, 0);
  const { data } = c.getImageData(0, 0, copy.width, copy.height);
  let count = 0;
  for (let i = 0; i < data.length; i += 4) count += data[i] === red && data[i + 1] === green && data[i + 2] === blue && data[i + 3] === 255;
  return count;
}, [r, g, b]);

test("behind the end of a folded tensor is nothing, and no NaN", async () => {
  const NAN = [214, 24, 160];
  for (const [name, query, hasSome] of [["stack", "fold=70", false], ["stack", "fold=1", false], ["flawed", "fold=70", true]]) {
    const page = await heatmap(name, query); // the last of 26 rows has 50; all are whole; one value is NaN
    await eventually(async () => (await pointsOf(page, NAN)) > 0, hasSome);
    await bench.quiet(page);
  }
});

test("a browser without WebGL2 is told so, and the rest goes on", async () => {
  const page = await bench.page("/");
  await page.addInitScript(() => {
    const original = HTMLCanvasElement.prototype.getContext;
    HTMLCanvasElement.prototype.getContext = function (kind, ...rest) {
      return kind === "webgl2" ? null : original.call(this, kind, ...rest);
    };
  });
  await page.goto(`${bench.address}/c/${id}/pairs/${indexOf("ramp")}?view=heatmap`);
  await page.getByRole("alert").getByText("no WebGL2").waitFor();
  await page.getByRole("button", { name: "1-D" }).click();
  await page.locator(".stack").first().waitFor();
  await bench.quiet(page);
});
