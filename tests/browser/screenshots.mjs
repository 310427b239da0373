// The pictures of the README, taken from the real page: tools/test-web.py screenshots BUILD FOLDER.
import { execFileSync } from "node:child_process";
import { renameSync } from "node:fs";
import { join } from "node:path";
import { open } from "./support.mjs";

const folder = process.argv[2];
const bench = await open();

/** What stands still is what is shown: no request is under way any more. */
async function take(path, name, options, prepare = async () => {}) {
  const page = await bench.page(path, options);
  await page.waitForLoadState("networkidle");
  await prepare(page);
  await page.waitForLoadState("networkidle");
  await page.waitForTimeout(500); // the last frame of the heatmap
  await page.screenshot({ path: join(folder, `${name}.png`) });
  await bench.quiet(page);
}

execFileSync(process.env.TDBG_EXAMPLE, ["--layers", "12", bench.path("dumps")], { stdio: "ignore" });
const sides = [["a", "reference"], ["b", "port"]].map(([from, to]) => {
  renameSync(bench.path("dumps", from), bench.path("dumps", to));
  return bench.path("dumps", to);
});
const id = await bench.compare(...sides);
const { first } = await bench.json("GET", `/comparisons/${id}`);

await take(`/c/${id}`, "overview", { width: 1280, height: 720 });
await take(`/c/${id}/pairs/${first.index}?view=heatmap`, "inspector", { width: 1600, height: 900, dark: true }, async (page) => {
  await page.getByRole("button", { name: "Max diff" }).click();
});

const root = process.env.TDBG_ROOT;
execFileSync("/usr/bin/python3", [join(root, "examples/unstable.py"), bench.path("runs/unstable")],
  { env: { ...process.env, PYTHONPATH: join(root, "python"), TDBG_LIBRARY: join(process.env.TDBG, "../libtdbg.so") } });
await take(`/run?path=${encodeURIComponent(bench.path("runs/unstable"))}`, "dashboard", { width: 1280, height: 900 });
await bench.close();
