// For everybody's eyes: accessibility by axe-core on every view, light and dark, wide and narrow.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { after, before, test } from "node:test";
import { eventually, exampleDumps, noise, open, safetensors } from "./support.mjs";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

let bench, id, lonely, explored, first;
before(async () => {
  bench = await open();
  id = await bench.compare(...exampleDumps(bench));
  first = (await bench.json("GET", `/comparisons/${id}`)).first.index;
  explored = await bench.compare(bench.path("dumps", "a"), null);
  const side = (name) => ({ [name + 1]: { shape: [3], values: noise(3, 1) }, [name + 2]: { shape: [3], values: noise(3, 2) } });
  lonely = await bench.compare(safetensors(bench.path("x.safetensors"), side("qux")), safetensors(bench.path("y.safetensors"), side("frob")), { match: "exact" });
});
after(() => bench.close());

/** The content security policy lets no script in; the debugger's own door is not bound by it. */
async function violations(page) {
  const session = await page.context().newCDPSession(page);
  await session.send("Runtime.evaluate", { expression: AXE });
  const { violations: found } = await page.evaluate(() => window.axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21aa", "best-practice"] }));
  return found.map((v) => `${v.id}: ${v.nodes.map((n) => `${n.target.join(" ")} ${n.any[0]?.message ?? ""}`).slice(0, 3).join("; ")}`);
}

const VIEWS = {
  start: ["/", async (page) => page.locator(".recent-row").first().waitFor()],
  "start, exploring": ["/?tab=explore", async () => {}],
  comparison: [() => `/c/${id}`, async (page) => {
    await page.getByRole("button", { name: "Expand all" }).click();
    await page.keyboard.press("j");
  }],
  settings: [() => `/c/${id}`, async (page) => page.getByRole("button", { name: "Settings" }).click()],
  pairing: [() => `/c/${lonely}`, async (page) => page.getByRole("button", { name: "Pair by hand…" }).click()],
  help: [() => `/c/${id}`, async (page) => page.getByRole("button", { name: "Keyboard help" }).click()],
  ...Object.fromEntries(["1d", "2d", "flat", "heatmap", "spread", "mapping"].map((view) => [`inspector, ${view}`, [
    () => `/c/${id}/pairs/${first}?view=${view}`, async (page) => page.locator(".stacks, .matrices, .heatmap-host, .graphs figure, .mapped").first().waitFor()]])),
  explorer: [() => `/c/${explored}`, async (page) => page.locator(".tensor-row").first().waitFor()],
  export: [() => `/c/${id}`, async (page) => page.getByRole("button", { name: "Export" }).click()],
};

for (const [name, [path, prepare]] of Object.entries(VIEWS))
  for (const [dark, width] of [[false, 1280], [true, 800]])
    test(`${name}, ${dark ? "dark" : "light"}, ${width} wide`, async () => {
      const page = await bench.page(typeof path === "string" ? path : path(), { dark, width, height: 900 });
      await page.getByRole("main").waitFor();
      await prepare(page);
      assert.deepEqual(await violations(page), []);
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth), "nothing sticks out sideways");
      await bench.quiet(page);
    });

test("dark or light is the system's, until somebody chooses; the choice stays", async () => {
  const page = await bench.page("/");
  const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await background();
  await page.getByRole("button", { name: "Light or dark" }).click();
  const dark = await background();
  assert.notEqual(light, dark);
  await page.reload();
  await eventually(background, dark);
  await page.getByRole("button", { name: "Light or dark" }).click();
  await page.emulateMedia({ colorScheme: "dark" });
  await eventually(background, dark);
  await bench.quiet(page);
});
