// The first page: dropping, picking and opening inputs, and what was compared before.
import assert from "node:assert/strict";
import { copyFileSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { archive, drop, dropPaths, eventually, exampleDumps, open, safetensors, titles } from "./support.mjs";

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
  await page.locator(".source").first().getByText("second.tar.gz").waitFor();
  await bench.quiet(page);
});

test("more files than sides are one input; a folder is chosen whole", async () => {
  const page = await bench.page("/");
  const names = readdirSync(a);
  await drop(page, ".source >> nth=0", names.map((name) => file(join(a, name), name)));
  await page.getByText(`${names.length} files, `).waitFor();
  await page.getByLabel("Folder for B").setInputFiles(b);
  await page.locator(".source").nth(1).getByText("b.tar").waitFor();
  await page.getByRole("button", { name: "Compare", exact: true }).click();
  await page.locator(".chip.diverged", { hasText: "28 diverged" }).waitFor();
  await page.getByRole("heading", { name: "layer 1, query" }).waitFor();
  await bench.quiet(page);
});

test("a folder is dropped with all that is in it, but what is hidden", async () => {
  const top = bench.path("dropped run");
  const long = `${"a layer with a name that no plain header of a tar holds ".repeat(3)}ü.npy`;
  for (const [inside, name] of [["deep/er", "1_key.npy"], ["deep", long], [".git", "index.npy"], ["", ".hidden.npy"]]) {
    mkdirSync(join(top, inside), { recursive: true });
    copyFileSync(join(a, "0_query.npy"), join(top, inside, name));
  }
  mkdirSync(join(top, "many"));
  for (let i = 0; i < 250; i++) copyFileSync(join(a, "0_query.npy"), join(top, "many", `${i}_query.npy`)); // browsers tell a hundred at a time
  const page = await bench.page("/?tab=explore");
  await dropPaths(page, ".source", [top]);
  await page.getByText("252 files, ").waitFor();
  await page.getByRole("button", { name: "Explore", exact: true }).click();
  await page.getByText("252 tensors").waitFor();
  const { tensors } = await bench.json("GET", `/comparisons/${page.url().split("/").pop()}/result`);
  assert.deepEqual(tensors.map((tensor) => tensor.name).filter((name) => !name.startsWith("many/")).sort(), [`deep/${long}`, "deep/er/1_key.npy"]);
  await bench.quiet(page);
});

test("a folder with nothing in it is refused in words", async () => {
  mkdirSync(bench.path("empty"));
  const page = await bench.page("/");
  await dropPaths(page, ".source >> nth=1", [bench.path("empty")]);
  await page.getByRole("alert").getByText("empty: no files in it").waitFor();
  await bench.quiet(page);
});

test("a file dropped beside the places for it is refused, and the page stays", async () => {
  const page = await bench.page("/");
  await page.locator(".recent").waitFor();
  const refused = await page.evaluate(() => ["dragover", "drop"].map((type) => {
    const data = new DataTransfer();
    data.items.add(new File(["x"], "x.npy"));
    return !document.querySelector(".recent").dispatchEvent(new DragEvent(type, { dataTransfer: data, bubbles: true, cancelable: true }));
  }));
  assert.deepEqual(refused, [true, true]);
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
  await page.getByRole("region", { name: "B", exact: true }).getByRole("button", { name: "Browse" }).click();
  await page.getByRole("button", { name: bench.folder }).click();
  await page.getByRole("button", { name: "dumps/" }).click();
  // Until a slow folder is there, "Open this folder" must not open the one before it.
  await page.route(/\/folder\?path=.*b$/, async (route) => {
    await new Promise((wait) => setTimeout(wait, 300));
    await route.continue();
  });
  await page.getByRole("button", { name: "b/", exact: true }).click();
  await page.getByRole("button", { name: "Open this folder" }).click();
  await page.getByRole("button", { name: "Compare", exact: true }).click();
  await page.getByRole("heading", { name: "layer 1, query" }).waitFor();
  await bench.quiet(page);
});

test("a typed path counts as it stands, and is taken when the focus leaves by Tab", async () => {
  const page = await bench.page("/");
  const compare = page.getByRole("button", { name: "Compare", exact: true });
  await page.getByLabel("Path on this machine for A").fill(a);
  await page.keyboard.press("Tab");
  await eventually(() => page.evaluate(() => document.activeElement.textContent.trim()), "Browse");
  await page.keyboard.press("Tab");
  await page.locator(".chosen").waitFor();
  await page.keyboard.press("Tab"); // from "Choose files…" of B
  await page.keyboard.press("Tab"); // over "Choose folder…" to its path
  await page.keyboard.type(b);
  await eventually(() => compare.isEnabled(), true);
  await page.keyboard.press("Tab");
  await page.keyboard.press("Tab");
  await eventually(() => page.locator(".chosen").count(), 2);
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "layer 1, query" }).waitFor();
  await bench.quiet(page);
});

test("a path outside the roots is refused in words", async () => {
  const page = await bench.page("/?tab=explore", { expected: [/403/] });
  await page.getByLabel("Path on this machine for Input").fill("/etc/passwd");
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Explore", exact: true }).click();
  await page.getByRole("alert").getByText("not under a root").waitFor();
  await page.getByRole("button", { name: "Choose another" }).click();
  await page.getByRole("alert").waitFor({ state: "detached" });
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

test("what cannot be explored was to be read, not compared", async () => {
  const page = await bench.page("/?tab=explore");
  await page.getByLabel("Path on this machine for Input").fill(`${a}:nothing`);
  await page.getByRole("button", { name: "Explore", exact: true }).click();
  await page.getByRole("heading", { name: "This could not be read" }).waitFor();
  await page.getByRole("button", { name: "Read again" }).waitFor();
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

test("when one upload is refused the other stops, and both can be chosen anew", async () => {
  const page = await bench.page("/", { expected: [/413/, /ERR_FAILED/] });
  await page.route(/uploads\?name=large/, (route) => route.fulfill({ status: 413, json: { error: "the upload is larger than 1 KB" } }));
  let stopped = false;
  page.on("requestfailed", (request) => (stopped ||= request.url().includes("name=endless")));
  await page.route(/uploads\?name=endless/, () => undefined); // never answered
  await drop(page, ".source", [file(archive(a), "large.tar.gz"), file(archive(b), "endless.tar.gz")]);
  await page.getByRole("button", { name: "Compare", exact: true }).click();
  await page.locator(".source").first().getByText("the upload is larger than 1 KB").waitFor();
  await eventually(() => stopped, true);
  assert.equal(await page.getByRole("button", { name: "Choose another" }).count(), 2);
  assert.equal(await page.locator(".source progress").count(), 0);
  await bench.quiet(page);
});

test("an upload under way ends when somebody leaves, and leads nowhere later", async () => {
  const page = await bench.page("/", { expected: [/ERR_FAILED/] });
  let stopped = false;
  page.on("requestfailed", (request) => (stopped ||= request.url().includes("/uploads")));
  await page.route(/uploads\?name=/, () => undefined);
  await drop(page, ".source", [file(archive(a), "one.tar.gz"), file(archive(b), "two.tar.gz")]);
  await page.getByRole("button", { name: "Compare", exact: true }).click();
  await page.locator(".source progress").first().waitFor();
  await page.getByRole("tab", { name: "Explore one" }).click();
  await eventually(() => stopped, true);
  await bench.quiet(page);
});

test("a comparison in which nothing was paired is not listed as one that agrees", async () => {
  const [one, other] = ["left", "right"].map((name) => safetensors(bench.path(`${name}.safetensors`), { [name]: { shape: [3], values: [1, 2, 3] } }));
  const [unpaired, same] = [await bench.compare(one, other, { match: "exact" }), await bench.compare(one, one)];
  const page = await bench.page("/");
  const row = (id) => page.locator(`.recent-row:has(a[href="/c/${id}"])`);
  await row(unpaired).getByText("nothing to compare").waitFor();
  await row(same).getByText("agree", { exact: true }).waitFor();
  await row(unpaired).getByRole("link").click();
  await page.getByRole("heading", { name: "No tensor of A has a partner in B" }).waitFor();
  assert.equal(await page.locator(".chart").count(), 0);
  await bench.quiet(page);
});

test("what was compared is listed, opens again, and can be forgotten", async () => {
  await bench.compare(b, a); // one that stays
  const id = await bench.compare(a, b);
  const page = await bench.page("/");
  const row = page.locator(`.recent-row:has(a[href="/c/${id}"])`);
  assert.equal(await row.locator(".recent-outcome").textContent(), "parts at 1_query.npy: bias");
  await row.getByRole("link").click();
  await page.getByRole("heading", { name: "layer 1, query" }).waitFor();
  await page.goBack();
  await row.getByRole("button", { name: /^Forget/ }).click();
  await row.waitFor({ state: "detached" });
  await eventually(() => page.evaluate(() => /^Forget/.test(document.activeElement.getAttribute("aria-label") ?? "")), true);
  await eventually(async () => (await bench.json("GET", "/comparisons")).comparisons.some((one) => one.id === id), false);
  await bench.quiet(page);
});

test("a server that starts again has all of it: uploads, their comparison, the order, the values", async () => {
  const page = await bench.page("/");
  await drop(page, ".source >> nth=1", [file(archive(a), "kept_a.tar.gz"), file(archive(b), "kept_b.tar.gz")]);
  await page.getByText("kept_a.tar.gz").waitFor();
  await page.getByRole("button", { name: "Compare", exact: true }).click();
  await page.getByRole("heading", { name: "layer 1, query" }).waitFor();
  const id = /\/c\/(\w+)/.exec(page.url())[1];
  await page.goto(`${bench.address}/c/${id}?group=none`);
  await page.locator(".pair-list").focus();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Alt+ArrowDown");
  await eventually(async () => (await bench.json("GET", `/comparisons/${id}/state`)).order?.slice(0, 2), [1, 0]);
  const order = (await titles(page)).slice(0, 6);
  await bench.quiet(page);

  await bench.restart();
  const later = await bench.page("/");
  await later.locator(".recent-row", { hasText: "kept_a.tar.gz" }).getByRole("link").click();
  await later.getByRole("heading", { name: "layer 1, query" }).waitFor();
  await later.getByLabel("Group").selectOption("none");
  await eventually(async () => (await titles(later)).slice(0, 6), order);
  await later.keyboard.press("g");
  await later.getByRole("button", { name: "Max diff" }).click();
  await eventually(() => later.locator(".stack").first().getAttribute("aria-label").then((text) => text.startsWith("[9, 3, ")), true);
  await bench.quiet(later);
});
