// The first page: dropping, picking and opening inputs, and what was compared before.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { archive, drop, eventually, exampleDumps, open } from "./support.mjs";

let bench, a, b;
before(async () => {
  bench = await open();
  [a, b] = exampleDumps(bench);
});
after(() => bench.close());

const file = (path, name) => ({ name, bytes: readFileSync(path) });

test("two archives dropped at once are uploaded and compared", async () => {
  const page = await bench.page("/");
  await drop(page, ".source >> nth=1", [file(archive(a), "left.tar.gz"), file(archive(b), "right.tar.gz")]);
  await page.getByText("left.tar.gz").waitFor();
  await page.getByRole("button", { name: "Compare", exact: true }).click();
  await page.waitForURL(/\/c\/[0-9a-f]+$/);
  await page.getByRole("heading", { name: "layer 1, query" }).waitFor();
  await page.locator(".chip.diverged", { hasText: "28 diverged" }).waitFor();
  assert.match(await page.title(), /left\.tar\.gz · right\.tar\.gz/);
  await bench.quiet(page);
});

test("one file on each side, swapped, and picked with the file dialog", async () => {
  const page = await bench.page("/");
  await page.locator(".source input[type=file]").first().setInputFiles({ name: "first.tar.gz", mimeType: "", buffer: readFileSync(archive(a)) });
  await drop(page, ".source >> nth=1", [file(archive(b), "second.tar.gz")]);
  await page.getByRole("button", { name: "Swap A and B" }).click();
  assert.match(await page.locator(".source").first().innerText(), /second\.tar\.gz/);
  await bench.quiet(page);
});

test("more files than sides are refused in words", async () => {
  const page = await bench.page("/");
  await drop(page, ".source >> nth=0", ["x", "y", "z"].map((name) => ({ name, bytes: Buffer.from("1") })));
  await page.getByText("3 files at once: two at most").waitFor();
  await bench.quiet(page);
});

test("a broken archive fails in words, and the server goes on", async () => {
  const page = await bench.page("/");
  const half = readFileSync(archive(b));
  await drop(page, ".source >> nth=0", [file(archive(a), "a.tar.gz"), { name: "broken.zip", bytes: half.subarray(100, 400) }]);
  await page.getByRole("button", { name: "Compare", exact: true }).click();
  await page.getByRole("heading", { name: "This could not be compared" }).waitFor();
  assert.match(await page.locator(".reason").innerText(), /broken\.zip/);
  await page.getByRole("link", { name: "Other inputs" }).click();
  await page.locator(".recent .failed").first().waitFor();
  await bench.quiet(page);
});

test("paths are opened in place: typed, and found in the folders of the server", async () => {
  const page = await bench.page("/");
  await page.getByLabel("Path on this machine for A").fill(a);
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Browse" }).click();
  await page.getByRole("button", { name: bench.folder }).click();
  await page.getByRole("button", { name: "dumps/" }).click();
  await page.getByRole("button", { name: "b/", exact: true }).click();
  await page.getByRole("button", { name: "Open this folder" }).click();
  await page.getByRole("button", { name: "Compare", exact: true }).click();
  await page.getByRole("heading", { name: "layer 1, query" }).waitFor();
  await bench.quiet(page);
});

test("a path outside the roots is refused in words", async () => {
  const page = await bench.page("/?tab=explore", { expected: [/403/] });
  await page.getByLabel("Path on this machine for Input").fill("/etc/passwd");
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Explore", exact: true }).click();
  await page.getByRole("alert").getByText("not under a root").waitFor();
  await bench.quiet(page);
});

test("one input is explored", async () => {
  const page = await bench.page("/");
  await page.getByRole("tab", { name: "Explore one" }).click();
  await drop(page, ".source", [file(archive(a), "one.tar.gz")]);
  await page.getByRole("button", { name: "Explore", exact: true }).click();
  await page.getByText("0_query.npy").first().waitFor();
  await bench.quiet(page);
});

test("a run against one tensor of another, by NAME[slice]", async () => {
  const page = await bench.page("/?tab=mixed");
  await page.getByLabel("Path on this machine for A").fill(`${a}:1_query.npy[0]`);
  await page.keyboard.press("Enter");
  await page.getByLabel("Path on this machine for B").fill(`${b}:1_query.safetensors[0, :, 0]`);
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Compare", exact: true }).click();
  await page.locator(".chip.diverged", { hasText: "1 diverged" }).waitFor();
  await bench.quiet(page);
});

test("what was compared is listed, opens again, and can be forgotten", async () => {
  const id = await bench.compare(a, b);
  const page = await bench.page("/");
  const row = page.locator(`.recent-row:has(a[href="/c/${id}"])`);
  assert.match(await row.innerText(), /parts at 1_query\.npy: bias/);
  await row.getByRole("link").click();
  await page.getByRole("heading", { name: "layer 1, query" }).waitFor();
  await page.goBack();
  await row.getByRole("button", { name: /^Forget/ }).click();
  await row.waitFor({ state: "detached" });
  await eventually(async () => (await bench.json("GET", "/comparisons")).comparisons.some((one) => one.id === id), false);
  await bench.quiet(page);
});
