// One pair looked at closely: sliders, worst elements, views, find, mapping, export, pictures. What is on screen is
// held against the numbers that were written into the files.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { eventually, noise, open, safetensors } from "./support.mjs";

const exact = (x) => String(Math.fround(x));
const turn = (values, rows, columns) => Array.from({ length: values.length }, (_, i) => values[(i % rows) * columns + Math.floor(i / rows)]);

/** A's tensors; B's are the same but for what `changes` says. */
const q = noise(24 * 8 * 16, 1);
const ramp = Array.from({ length: 300 * 520 }, (_, i) => (i % 520) / 520 - 0.5);
const flawed = noise(64 * 96, 2);
const turned = noise(12 * 20, 3);
const deep = noise(2 * 3 * 4 * 5 * 6, 4);
const flat = (at, shape) => at.reduce((sum, index, axis) => sum * shape[axis] + index, 0);
const changed = (values, changes) => Object.entries(changes).reduce((all, [i, value]) => all.with(Number(i), value), values);

let bench, id, indexOf, qB;
before(async () => {
  bench = await open();
  const qShape = [24, 8, 16];
  qB = changed(q, { [flat([9, 3, 5], qShape)]: 3, [flat([2, 7, 15], qShape)]: 2, [flat([20, 0, 1], qShape)]: -1.9 });
  const a = safetensors(bench.path("a.safetensors"), {
    q: { shape: qShape, values: q }, ramp: { shape: [300, 520], values: ramp },
    flawed: { shape: [64, 96], values: changed(flawed, { [12 * 96 + 22]: -Infinity }) },
    turned: { shape: [12, 20], values: turned }, deep: { shape: [2, 3, 4, 5, 6], values: deep }, scalar: { shape: [], values: [3.5] },
    empty: { shape: [0, 4], values: [] }, tiny: { shape: [8, 8], values: noise(64, 6).map((v) => v * 1e-30) }, lonely: { shape: [3, 5], values: noise(15, 5) },
    longer: { shape: [1, 4, 9, 6], values: noise(216, 8) },
  });
  const b = safetensors(bench.path("b.safetensors"), {
    q: { shape: qShape, values: qB }, ramp: { shape: [300, 520], values: ramp.map((v, i) => (i === 5200 ? v + 1 : v)) },
    flawed: { shape: [64, 96], values: changed(flawed, { [10 * 96 + 20]: NaN }) },
    turned: { shape: [20, 12], values: turn(turned, 12, 20) }, deep: { shape: [2, 3, 4, 5, 6], values: deep.with(719, 9) }, scalar: { shape: [], values: [3.75] },
    empty: { shape: [0, 4], values: [] }, tiny: { shape: [8, 8], values: noise(64, 7).map((v) => v * 1e-30) },
    longer: { shape: [4, 7, 6], values: noise(168, 9) },
  });
  id = await bench.compare(a, b, { match: "exact" });
  const { pairs } = await bench.json("GET", `/comparisons/${id}/result`);
  indexOf = (name) => pairs.find((pair) => pair.name === name).index;
});
after(() => bench.close());

const look = (name, query = "", options = {}) => bench.page(`/c/${id}/pairs/${indexOf(name)}?${query}`, options);
const label = (page, n) => page.locator(".stack").nth(n).getAttribute("aria-label");
const slider = (page, axis) => page.getByRole("slider", { name: `axis ${axis}`, exact: true });
const place = (page) => page.getByRole("slider").evaluateAll((list) => list.map((input) => Number(input.value)));

test("sliders and number fields choose the values, and the address follows", async () => {
  const page = await look("q");
  await eventually(() => label(page, 0), `[0, 0, 0], A ${exact(q[0])}, B ${exact(q[0])}, difference 0`);
  assert.equal(await page.locator(".stack").count(), 10);
  await slider(page, 0).focus();
  for (let i = 0; i < 5; i++) await page.keyboard.press("ArrowRight");
  await page.getByLabel("axis 1, index").fill("7");
  await page.keyboard.press("Enter");
  await page.getByLabel("values", { exact: true }).fill("16");
  await page.keyboard.press("Enter");
  const at = flat([5, 7, 3], [24, 8, 16]);
  await eventually(() => label(page, 3), `[5, 7, 3], A ${exact(q[at])}, B ${exact(q[at])}, difference 0`);
  await eventually(() => page.locator(".stack").count(), 16);
  await page.waitForURL(/at=5%2C7%2C0&count=16/);
  await page.reload();
  await eventually(() => place(page), [5, 7, 0]);
  await bench.quiet(page);
});

test("signs have colours, large differences a border and a mark", async () => {
  const page = await look("q", "at=9,3,0");
  const cells = page.locator(".stack .val");
  await cells.first().waitFor();
  for (let i = 0; i < 10; i++) {
    const value = q[flat([9, 3, i], [24, 8, 16])];
    assert.match(await cells.nth(2 * i).getAttribute("class"), value < 0 ? /cold/ : /hot/);
    assert.match(await page.locator(".stack").nth(i).getAttribute("class"), i === 5 ? /large/ : /small/);
  }
  await bench.quiet(page);
});

test("a cell tells its exact value, index and difference, by mouse and by keyboard", async () => {
  const page = await look("q", "at=9,3,0");
  await page.locator(".stack").nth(5).hover();
  const tip = page.getByRole("tooltip");
  await tip.getByText("[9, 3, 5]").waitFor();
  assert.ok((await tip.innerText()).includes(exact(q[flat([9, 3, 5], [24, 8, 16])])));
  await page.mouse.move(0, 0);
  await page.locator(".stack").first().focus();
  await page.keyboard.press("ArrowRight");
  await tip.getByText("[9, 3, 1]").waitFor();
  await bench.quiet(page);
});

test("Escape hides the tip, then leaves the field, and only then closes the pair", async () => {
  const page = await look("q");
  const isOpen = () => new URL(page.url()).pathname.includes("/pairs/");
  await page.locator(".stack").nth(2).hover();
  await page.getByRole("tooltip").waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("tooltip").waitFor({ state: "detached" });
  assert.ok(isOpen());
  await page.mouse.move(0, 0);
  await page.getByRole("searchbox", { name: /Value, range/ }).fill("0.5");
  await page.keyboard.press("Escape");
  await eventually(() => page.evaluate(() => document.activeElement.tagName), "BODY");
  assert.ok(isOpen());
  await page.keyboard.press("Escape");
  await page.waitForURL((url) => url.pathname === `/c/${id}`);
  await bench.quiet(page);
});

test("jump to the largest difference, the next and the one before", async () => {
  const page = await look("q");
  await page.getByText("Worst elements").waitFor();
  await page.locator(".worst li").first().waitFor();
  await page.keyboard.press("m");
  const worst = flat([9, 3, 5], [24, 8, 16]);
  await eventually(() => place(page), [9, 3, 5]);
  await eventually(() => page.locator(".stack[aria-current]").getAttribute("aria-label"),
    `[9, 3, 5], A ${exact(q[worst])}, B 3, difference ${3 - Math.fround(q[worst])}`);
  await page.keyboard.press("n");
  await eventually(async () => ["2,7,15", "20,0,1"].includes((await place(page)).join()), true);
  const second = await place(page);
  await page.keyboard.press("p");
  await eventually(() => place(page), [9, 3, 5]);
  await page.getByRole("button", { name: "Next worst" }).click();
  await eventually(() => place(page), second);
  await page.locator(".worst li button").first().click();
  await eventually(() => place(page), [9, 3, 5]);
  await bench.quiet(page);
});

test("what stands above the values stays where it is, and nothing in it stands alone", async () => {
  const page = await look("q", "", { width: 1600 });
  await page.locator(".worst li").first().waitFor();
  const top = async (part) => (await page.locator(part).first().boundingBox()).y;
  for (const width of [1280, 1600]) {
    await page.setViewportSize({ width, height: 800 });
    await eventually(async () => await top(".look-tools .menu") - await top(".finder"), 0);
  }
  const before = await top(".place-controls");
  await page.getByRole("button", { name: "Max diff" }).click();
  await page.getByText("1 of 3").waitFor();
  assert.equal(await top(".place-controls"), before);
  await bench.quiet(page);
});

test("two axes as a grid, also turned", async () => {
  const page = await look("q", "view=2d");
  const cellOf = (which, row, column) => page.getByRole("table", { name: which, exact: true }).locator("tbody tr").nth(row).locator("td").nth(column);
  const value = (at) => q[flat(at, [24, 8, 16])];
  await eventually(async () => (await cellOf("A", 2, 3).getAttribute("aria-label")).split(", B")[0], `[0, 2, 3], A ${exact(value([0, 2, 3]))}`);
  await page.getByLabel("rows", { exact: true }).selectOption("2");
  await page.getByLabel("columns", { exact: true }).selectOption("0");
  await eventually(async () => (await cellOf("B", 4, 7).getAttribute("aria-label")).split(", B")[0], `[7, 0, 4], A ${exact(value([7, 0, 4]))}`);
  await bench.quiet(page);
});

test("the tensor flattened", async () => {
  const page = await look("q", "view=flat");
  await page.getByLabel("element, index").fill("1000");
  await page.keyboard.press("Enter");
  await eventually(async () => (await label(page, 0)).split(", B")[0], `[7, 6, 8], A ${exact(q[1000])}`);
  assert.equal(await page.locator(".stack").count(), 10);
  await bench.quiet(page);
});

test("any number of dimensions, none too, no elements, and one side alone", async () => {
  let page = await look("deep");
  await eventually(() => page.getByRole("slider").count(), 5);
  await page.locator(".worst li").first().waitFor();
  await page.keyboard.press("m");
  await eventually(() => place(page), [1, 2, 3, 4, 5]);
  await bench.quiet(page);
  page = await look("scalar");
  await eventually(() => label(page, 0), "[], A 3.5, B 3.75, difference 0.25");
  assert.equal(await page.getByRole("slider").count(), 0);
  await bench.quiet(page);
  page = await look("empty");
  await page.getByText("This tensor has no elements.").waitFor();
  assert.equal(await page.getByRole("region", { name: "Difference" }).count(), 0); // nor values that are not finite
  await bench.quiet(page);
  page = await look("lonely");
  await eventually(() => page.locator(".stack").first().locator(".val").count(), 1);
  assert.equal(await page.getByRole("button", { name: "Mapping" }).count(), 0);
  await bench.quiet(page);
});

test("NaN and infinities are unmistakable, and are found", async () => {
  const page = await look("flawed", "at=10,16");
  const nan = page.locator(".stack").nth(4).locator(".is-nan");
  await nan.waitFor();
  assert.equal(await nan.innerText(), "NaN");
  const find = page.getByRole("searchbox", { name: /Value, range/ });
  await find.fill("inf");
  await page.keyboard.press("Enter");
  await eventually(() => place(page), [12, 22]);
  await find.fill("+inf");
  await page.keyboard.press("Enter");
  await page.getByRole("status").getByText("nothing found").waitFor();
  await find.fill("1e400"); // no number there is
  await page.getByRole("status").getByText("a number, 0.5..1").waitFor();
  await slider(page, 0).fill("0");
  await find.fill("-inf");
  await find.press("Enter");
  await eventually(() => place(page), [12, 22]);
  await page.getByLabel("Side", { exact: true }).selectOption("b");
  await find.fill("nan");
  await page.keyboard.press("Enter");
  await eventually(() => place(page), [10, 20]);
  await page.getByRole("status").getByText("1 of 1").waitFor();
  await bench.quiet(page);
});

test("a range is found place by place, forwards and back", async () => {
  const found = q.map((value, i) => [Math.fround(value), i]).filter(([value]) => value >= 0.99 && value <= 1).map(([, i]) => i);
  assert.ok(found.length > 2);
  const coordinates = (i) => [Math.floor(i / 128), Math.floor(i / 16) % 8, i % 16];
  const page = await look("q");
  const find = page.getByRole("searchbox", { name: /Value, range/ });
  await find.fill("0.99..1");
  await page.keyboard.press("Enter");
  await eventually(() => place(page), coordinates(found[0]));
  await page.keyboard.press("Enter");
  await eventually(() => place(page), coordinates(found[1]));
  await page.getByRole("button", { name: "Previous place" }).click();
  await eventually(() => place(page), coordinates(found[0]));
  await page.getByRole("status").getByText(`1 of ${found.length}`).waitFor();
  await find.fill("no number");
  await eventually(() => find.getAttribute("aria-invalid"), "true");
  await bench.quiet(page);
});

test("a search goes on through a tensor that one request does not see the end of", async () => {
  const page = await look("q");
  let goOn;
  const told = new Promise((resolve) => (goOn = resolve));
  await page.route(/\/find\?.*from=0&/, (route) => route.fulfill({ json: { places: [], next: 1536 } }));
  await page.route(/\/find\?.*from=1536&/, async (route) => {
    await told;
    await route.fulfill({ json: { places: [{ index: [20, 0, 1], flat: 2561, value: 7 }], next: null } });
  });
  await page.getByRole("searchbox", { name: /Value, range/ }).fill("7");
  await page.keyboard.press("Enter");
  await page.getByRole("status").getByText("looking, 50 %").waitFor();
  goOn();
  await eventually(() => place(page), [20, 0, 1]);
  await page.getByRole("status").getByText("1 of 1").waitFor();
  await bench.quiet(page);
});

test("a bar of the error along an axis sets its slider", async () => {
  const page = await look("q");
  const strip = page.locator(".slider").first().locator("canvas");
  const box = await strip.boundingBox();
  await strip.click({ position: { x: ((9 + 0.5) / 24) * box.width, y: box.height - 3 } });
  await eventually(() => place(page), [9, 0, 0]);
  await bench.quiet(page);
});

test("a slice as a file: .npy of A, .csv of the difference", async () => {
  const page = await look("q", "at=9,3,0&count=8");
  await page.locator(".stack").first().waitFor();
  const fetched = async (name) => {
    await page.getByRole("button", { name: "Export slice" }).click();
    const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("menuitem", { name, exact: true }).click()]);
    return readFileSync(await download.path());
  };
  const npy = await fetched("A as .npy");
  assert.equal(npy.subarray(1, 6).toString(), "NUMPY");
  const start = 10 + npy.readUInt16LE(8);
  const got = Array.from({ length: 8 }, (_, i) => npy.readFloatLE(start + 4 * i));
  assert.deepEqual(got, Array.from({ length: 8 }, (_, i) => Math.fround(q[flat([9, 3, i], [24, 8, 16])])));
  const csv = (await fetched("B − A as .csv")).toString();
  assert.ok(csv.includes(String(3 - Math.fround(q[flat([9, 3, 5], [24, 8, 16])]))), csv);
  await bench.quiet(page);
});

test("a mapping by hand: suggested, changed, kept", async () => {
  const page = await look("turned", "view=mapping");
  const fact = (name) => page.locator(".mapped .figures div", { hasText: name }).locator("dd");
  await page.getByRole("button", { name: "as compared" }).waitFor();
  await eventually(() => fact("max abs").innerText(), "0");
  await page.getByLabel("B axis 1, index").fill("3");
  await page.keyboard.press("Enter");
  await eventually(async () => (await fact("max abs").innerText()) === "0", false);
  await page.getByLabel("A axis 0, index").fill("3");
  await page.keyboard.press("Enter");
  await eventually(() => fact("max abs").innerText(), "0");
  await page.waitForURL(/ma=3%2C0%3A10&mb=0%3A10%2C3/);
  await eventually(async () => (await bench.json("GET", `/comparisons/${id}/state`)).mappings?.[indexOf("turned")], { a: "3,0:10", b: "0:10,3" });
  await bench.quiet(page);
  const later = await look("turned", "view=mapping");
  await eventually(() => later.getByLabel("A axis 0, index").inputValue(), "3");
  await later.getByLabel("slice").first().fill("0");
  await later.keyboard.press("Enter");
  await later.getByText("The slices hold 20 values of A and 10 of B").waitFor();
  await bench.quiet(later);
});

test("shapes that do not line up: what both have is offered, and has its colours", async () => {
  const page = await look("longer");
  await page.getByText("do not line up (216 and 168 elements)").last().waitFor();
  await page.getByRole("button", { name: "what both have", pressed: true }).waitFor();
  const cells = page.getByRole("list", { name: "Values of B" }).getByRole("listitem");
  await eventually(() => cells.count(), 6);
  const depths = await cells.evaluateAll((list) => list.map((cell) => Number(cell.style.getPropertyValue("--depth"))));
  assert.ok(depths.every((depth) => depth > 0 && depth <= 1), String(depths));
  await page.getByLabel("A axis 2, index").fill("8");
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "what both have", pressed: false }).click();
  await eventually(() => page.getByLabel("A axis 2, index").inputValue(), "0");
  await bench.quiet(page);
});

test("distributions count every finite value", async () => {
  const page = await look("q", "view=spread");
  await page.getByText("A 3,072, B 3,072 finite values").waitFor();
  await page.getByText("3,072 pairs of finite values").waitFor();
  await bench.quiet(page);
  const flaws = await look("flawed", "view=spread");
  await flaws.getByText("A 6,143, B 6,143 finite values").waitFor();
  await flaws.getByText("6,142 pairs of finite values").waitFor();
  await bench.quiet(flaws);
});

test("the numbers of a plot are whole, however long they are", async () => {
  const page = await look("tiny");
  await page.evaluate(() => {
    const { fillText } = CanvasRenderingContext2D.prototype;
    window.written = [];
    CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
      const width = this.measureText(text).width;
      window.written.push({ text, left: this.textAlign === "right" ? x - width : this.textAlign === "center" ? x - width / 2 : x });
      fillText.call(this, text, x, y);
    };
  });
  await page.getByRole("button", { name: "Distributions" }).click();
  await page.waitForFunction(() => window.written.some(({ text }) => /^-\d\.\d\de-3/.test(text)) && window.written.some(({ text }) => text === "B"));
  assert.deepEqual(await page.evaluate(() => window.written.filter(({ left }) => left < 0)), []);
  await bench.quiet(page);
});
