// One input explored: the list of its tensors, one looked at, two compared.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { eventually, noise, open, safetensors } from "./support.mjs";

let bench, id;
before(async () => {
  bench = await open();
  const tensors = { "head.weight": { shape: [30, 40], values: noise(1200, 1) }, "head.copy": { shape: [30, 40], values: noise(1200, 1).with(77, 5) } };
  for (let i = 0; i < 400; i++) tensors[`layers.${i}.bias`] = { shape: [8], values: noise(8, i + 2).map((v) => v * (i + 1)) };
  tensors["layers.7.broken"] = { shape: [4], values: [1, NaN, Infinity, 2] };
  id = await bench.compare(safetensors(bench.path("one.safetensors"), tensors), null);
});
after(() => bench.close());

const names = (page) => page.locator(".tensor-row .of-name").allInnerTexts();

test("the list shows type, shape and statistics, and holds few rows of many", async () => {
  const page = await bench.page(`/c/${id}`);
  await page.getByText("403 tensors").waitFor();
  const row = page.locator(".tensor-row", { hasText: "head.weight" });
  assert.match(await row.innerText(), /float32\s+\[30, 40\]\s+1,200/);
  assert.ok((await page.locator(".tensor-row").count()) < 100);
  await bench.quiet(page);
});

test("however narrow the window, long names tell their layers", async () => {
  const tensors = Object.fromEntries(Array.from({ length: 30 }, (_, n) =>
    [`base_model.model.model.language_model.layers.${n}.mlp.experts.gate_up_proj_dequantised.weight`, { shape: [2], values: [n, 1] }]));
  const long = await bench.compare(safetensors(bench.path("long.safetensors"), tensors), null);
  for (const width of [700, 800, 1280]) {
    const page = await bench.page(`/c/${long}`, { width });
    await page.locator(".tensor-row").first().waitFor();
    const shown = await page.locator(".tensor-row .of-name").evaluateAll((cells) => cells.slice(0, 12).map((cell) => {
      const number = cell.querySelector(".name-number").getBoundingClientRect(), tail = cell.querySelector(".name-tail").getBoundingClientRect(), box = cell.getBoundingClientRect();
      return number.left >= box.left && number.right <= tail.left && tail.right <= box.right + 1;
    }));
    assert.deepEqual([...new Set(shown)], [true], `at ${width}`);
    await bench.quiet(page);
  }
});

test("filtered and sorted, in the address", async () => {
  const page = await bench.page(`/c/${id}`);
  await page.getByLabel("Filter tensors").fill("layers.7. [4]");
  await eventually(() => names(page), ["layers.7.broken"]);
  await page.getByLabel("Filter tensors").fill("");
  await page.getByRole("button", { name: "Max", exact: true }).click();
  await page.getByRole("button", { name: "Max", exact: true }).click();
  await page.waitForURL(/sort=-max/);
  await eventually(async () => Number(/layers\.(\d+)/.exec((await names(page))[0])?.[1]) > 350, true);
  await bench.quiet(page);
});

test("a tensor opens beside the list with values, picture and distribution", async () => {
  const page = await bench.page(`/c/${id}`, { width: 1600 });
  await page.getByRole("link", { name: "head.weight" }).click();
  await page.locator(".stack").first().waitFor();
  assert.equal(await page.locator(".stack").first().locator(".val").count(), 1);
  await page.getByRole("button", { name: "Distributions" }).click();
  await page.getByText("A 1,200 finite values").waitFor();
  await page.getByRole("button", { name: "Heatmap" }).click();
  await page.getByRole("application", { name: /30 rows, 40 columns/ }).waitFor();
  await bench.quiet(page);
});

test("from tensor to tensor with the keyboard is one visit: back leads to the list", async () => {
  const page = await bench.page(`/c/${id}`);
  await page.locator(".tensor-row").first().waitFor();
  for (const [key, index] of [["j", 0], ["j", 1], ["j", 2], ["k", 1]]) {
    await page.keyboard.press(key);
    await page.waitForURL(`**/c/${id}/pairs/${index}`);
  }
  await page.goBack();
  await page.waitForURL(`**/c/${id}`);
  await bench.quiet(page);
});

test("two tensors are compared with each other", async () => {
  const page = await bench.page(`/c/${id}?q=head&sort=-max`);
  await page.getByLabel("choose head.weight").check();
  await page.getByLabel("choose head.copy").check();
  await page.getByRole("button", { name: "Compare the two" }).click();
  await page.waitForURL((url) => !url.pathname.includes(id) && url.search === "");
  await page.getByText("1 diverged").first().waitFor();
  assert.equal(await page.locator(".shown").innerText(), "1 pair");
  await bench.quiet(page);
});
