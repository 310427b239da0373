// What the tests of the page share: a server of their own, a browser, inputs to compare.
//
// Everything goes through the real binary ($TDBG) and Debian's chromium. A test file calls `open()` once; each
// page it opens fails the test when the browser complains about anything (errors, the content security policy).
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";

const TDBG = process.env.TDBG;
const EXAMPLE = process.env.TDBG_EXAMPLE; // writes two dumps of a tiny transformer that part at layer 1, query
const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";
const SLOW = Number(process.env.TDBG_SLOW ?? 0); // every answer comes up to so many ms late: shows what races
const PATIENCE = 20_000; // ms: what a browser does at once takes it seconds on a busy machine
assert.ok(TDBG && EXAMPLE, "run these tests with tools/test-web.py");

/** A server on a free port that may open what lies in `folder`. */
async function serve(folder) {
  const child = spawn(TDBG, ["serve", "--port", "0", "--data", join(folder, "data"), "--root", folder], { stdio: ["ignore", "pipe", "inherit"] });
  let text = "";
  const address = await new Promise((resolve, reject) => {
    child.stdout.on("data", (data) => {
      text += data;
      const found = /http:\/\/[\d.]+:\d+/.exec(text);
      if (found) resolve(found[0]);
    });
    child.on("exit", (code) => reject(new Error(`tdbg serve ended with ${code} before it said where it is`)));
  });
  const stop = () => new Promise((resolve) => {
    child.removeAllListeners("exit");
    child.on("exit", resolve);
    child.kill("SIGTERM");
  });
  return { address, stop };
}

class Bench {
  constructor(folder, server, browser) {
    Object.assign(this, { folder, server, browser, address: server.address });
  }

  path(...names) {
    return join(this.folder, ...names);
  }

  async json(method, path, body) {
    const response = await fetch(`${this.address}/api/v1${path}`, {
      method, headers: body === undefined ? {} : { "Content-Type": "application/json" }, body: body === undefined ? undefined : JSON.stringify(body),
    });
    assert.ok(response.ok, `${method} ${path}: ${response.status}`);
    return response.status === 204 ? null : response.json();
  }

  /** Compares two paths (or explores one) and waits for the end; the id. */
  async compare(a, b, settings = {}) {
    const begun = await this.json("POST", "/comparisons", { a: { path: a }, b: b === null ? null : { path: b }, settings });
    for (;;) {
      const now = await this.json("GET", `/comparisons/${begun.id}`);
      if (now.status !== "queued" && now.status !== "running") return begun.id;
      await new Promise((wait) => setTimeout(wait, 20));
    }
  }

  /** A page that must be quiet. `expected` are complaints that belong to the test. */
  async page(path, { width = 1280, height = 800, dark = false, expected = [] } = {}) {
    const context = await this.browser.newContext({ viewport: { width, height }, colorScheme: dark ? "dark" : "light", reducedMotion: "reduce", acceptDownloads: true });
    if (SLOW) {
      await context.route(/\/api\/v1\//, async (route) => {
        await new Promise((wait) => setTimeout(wait, Math.random() * SLOW));
        await route.continue().catch(() => undefined); // the page may be gone by then
      });
    }
    const page = await context.newPage();
    page.setDefaultTimeout(PATIENCE);
    page.complaints = [];
    const complain = (text) => expected.some((pattern) => pattern.test(text)) || page.complaints.push(text);
    page.on("pageerror", (error) => complain(error.message));
    page.on("console", (message) => ["error", "warning"].includes(message.type()) && complain(message.text()));
    await page.goto(this.address + path);
    return page;
  }

  /** Ends a page; its complaints are the test's. */
  async quiet(page) {
    assert.deepEqual(page.complaints, []);
    await page.context().close();
  }

  /** The server ends and another begins with the same data; it has another address. */
  async restart() {
    await this.server.stop();
    this.server = await serve(this.folder);
    this.address = this.server.address;
  }

  async close() {
    await this.browser.close();
    await this.server.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** `gpu`: emulated, for WebGL. Without it the browser draws by itself, which is far faster where there is no real one. */
export async function open({ gpu = true } = {}) {
  const folder = mkdtempSync(join(tmpdir(), "tdbg-browser-"));
  const server = await serve(folder);
  const browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox", ...(gpu ? ["--use-angle=swiftshader", "--enable-unsafe-swiftshader"] : ["--disable-gpu"])] });
  return new Bench(folder, server, browser);
}

// --- inputs -------------------------------------------------------------------------------------------------

/** Folders a/ and b/: four layers, 52 pairs, first divergence at layer 1, query. */
export function exampleDumps(bench) {
  execFileSync(EXAMPLE, [bench.path("dumps")], { stdio: "ignore" });
  return [bench.path("dumps", "a"), bench.path("dumps", "b")];
}

/** A folder as .tar.gz beside it. */
export function archive(folder) {
  execFileSync("tar", ["-czf", `${folder}.tar.gz`, "-C", folder, "."]);
  return `${folder}.tar.gz`;
}

/** A safetensors file of float32 tensors: {name: {shape, values}}. */
export function safetensors(path, tensors) {
  const header = {};
  const parts = [];
  let at = 0;
  for (const [name, { shape, values }] of Object.entries(tensors)) {
    const floats = values instanceof Float32Array ? values : Float32Array.from(values);
    const bytes = Buffer.from(floats.buffer);
    header[name] = { dtype: "F32", shape, data_offsets: [at, at + bytes.length] };
    parts.push(bytes);
    at += bytes.length;
  }
  const json = Buffer.from(JSON.stringify(header));
  const size = Buffer.alloc(8);
  size.writeBigUInt64LE(BigInt(json.length));
  mkdirSync(join(path, ".."), { recursive: true });
  writeFileSync(path, Buffer.concat([size, json, ...parts]));
  return path;
}

/** The same numbers for the same seed, between -1 and 1. */
export function noise(count, seed) {
  let state = seed * 2654435761 % 4294967296 || 1;
  return Array.from({ length: count }, () => {
    state = (state * 1664525 + 1013904223) % 4294967296;
    return state / 2147483648 - 1;
  });
}

/** Files dropped onto an element, as a file manager does it. */
export async function drop(page, selector, files) {
  const transfer = await page.evaluateHandle((list) => {
    const data = new DataTransfer();
    for (const { name, base64 } of list)
      data.items.add(new File([Uint8Array.from(atob(base64), (c) => c.charCodeAt(0))], name));
    return data;
  }, files.map(({ name, bytes }) => ({ name, base64: bytes.toString("base64") })));
  for (const type of ["dragenter", "dragover", "drop"]) await page.dispatchEvent(selector, type, { dataTransfer: transfer });
}

/** Files and folders of the disk dropped onto an element, by the hand of the debugger: a page cannot make a folder. */
export async function dropPaths(page, selector, files) {
  const { x, y, width, height } = await page.locator(selector).boundingBox();
  const session = await page.context().newCDPSession(page);
  for (const type of ["dragEnter", "dragOver", "drop"])
    await session.send("Input.dispatchDragEvent", { type, x: x + width / 2, y: y + height / 2, data: { items: [], files, dragOperationsMask: 1 } });
}

/** What the list shows, row by row: the first text of each. */
export const titles = (page) =>
  page.locator(".pair-list .row").evaluateAll((rows) =>
    rows.sort((x, y) => Number(x.getAttribute("aria-rowindex")) - Number(y.getAttribute("aria-rowindex")))
      .map((row) => row.querySelector(".name").textContent));

/** Until `get` gives what is wanted; then the test goes on, else it says what it was. */
export async function eventually(get, wanted) {
  for (const end = Date.now() + PATIENCE; ;) {
    const got = await get();
    try {
      return assert.deepEqual(got, wanted);
    } catch (error) {
      if (Date.now() > end) throw error;
      await new Promise((wait) => setTimeout(wait, 50));
    }
  }
}
