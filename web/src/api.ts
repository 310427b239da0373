// The only place that talks to the server. What comes back is typed after docs/api.md; bulk values come as
// binary and stay typed arrays. Every failure is an ApiError whose message is the server's own sentence.
import type {
  Comparison, ControlRequest, Density, DiffResult, ExploreResult, Folder, Found, Histogram, Mapped, PageState, PairDetail,
  RunList, RunNews, ServerStatus, Settings, Source, Tile, Uploaded, Values, Which, WorstElement,
} from "./model";

export class ApiError extends Error {
  constructor(readonly status: number, message: string) {
    super(message);
  }
}

const BASE = "/api/v1";
const NO_SERVER = "the server does not answer; is tdbg serve still running?";

let conflict = () => {};

/** Calls when the server answers that something is not in the state the page takes it to be in (409). */
export function onConflict(listener: () => void): void {
  conflict = listener;
}

type Query = Record<string, string | number | undefined>;

function address(path: string, query: Query = {}): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined);
  const text = new URLSearchParams(given.map(([key, value]) => [key, String(value)])).toString();
  return BASE + path + (text ? "?" + text : "");
}

/** The server's sentence out of an error body, or something as short. */
function complaint(status: number, body: string): string {
  try {
    const parsed: unknown = JSON.parse(body);
    if (parsed && typeof parsed === "object" && "error" in parsed && typeof parsed.error === "string") return parsed.error;
  } catch {
    // Not JSON: a proxy, perhaps.
  }
  return `the server answered ${status}`;
}

async function send(method: string, url: string, body?: unknown, signal?: AbortSignal): Promise<Response> {
  const init: RequestInit = { method, credentials: "same-origin" };
  if (signal) init.signal = signal;
  if (body !== undefined) {
    init.body = JSON.stringify(body);
    init.headers = { "Content-Type": "application/json" };
  }
  let response: Response;
  try {
    response = await fetch(url, init);
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new ApiError(0, NO_SERVER);
  }
  if (response.status === 409) conflict();
  if (!response.ok) throw new ApiError(response.status, complaint(response.status, await response.text()));
  return response;
}

async function json<T>(method: string, url: string, body?: unknown, signal?: AbortSignal): Promise<T> {
  return (await (await send(method, url, body, signal)).json()) as T;
}

const comparisonPath = (id: string) => `/comparisons/${encodeURIComponent(id)}`;

let shown: { id: string; generation: number } | null = null;

/** The result on screen: its pairs are asked for as pairs of this one, and never answered from another. */
export function showing(id: string, generation: number): void {
  shown = { id, generation };
}

const pairAddress = (id: string, index: number, route = "", query: Query = {}) =>
  address(`${comparisonPath(id)}/pairs/${index}${route}`, { ...query, generation: shown?.id === id ? shown.generation : undefined });

// --- comparisons --------------------------------------------------------------------------------------------

export const status = () => json<ServerStatus>("GET", address("/status"));
export const comparisons = async () => (await json<{ comparisons: Comparison[] }>("GET", address("/comparisons"))).comparisons;
export const comparison = (id: string) => json<Comparison>("GET", address(comparisonPath(id)));
export const result = <T extends DiffResult | ExploreResult>(id: string) => json<T>("GET", address(`${comparisonPath(id)}/result`));
export const cancel = (id: string) => json<Comparison>("POST", address(`${comparisonPath(id)}/cancel`));
export const compareAgain = (id: string, settings: Settings) =>
  json<Comparison>("PUT", address(`${comparisonPath(id)}/settings`), settings);
export const pageState = (id: string) => json<PageState>("GET", address(`${comparisonPath(id)}/state`));

/** What the page shows first, when the server has put it into the page (assets.c). It is good for once: later it is old. */
export interface Carried {
  comparison: Comparison;
  state: PageState;
  result: DiffResult | ExploreResult;
}

export function carried(id: string): Carried | null {
  const element = document.getElementById("carried");
  if (!element) return null;
  element.remove();
  const found = JSON.parse(element.textContent) as Carried;
  return found.comparison.id === id && found.comparison.status === "done" ? found : null;
}

/** Changes the notes on one result; what else they hold stays, whoever wrote it. */
export async function changePageState(id: string, generation: number, changes: PageState): Promise<void> {
  await send("PATCH", address(`${comparisonPath(id)}/state`, { generation }), changes);
}

export function start(a: Source, b: Source | null, settings: Settings = {}): Promise<Comparison> {
  return json<Comparison>("POST", address("/comparisons"), { a, b, settings });
}

export async function forget(id: string): Promise<void> {
  await send("DELETE", address(comparisonPath(id)));
}

/** Tells of every change until the comparison stands still; the answer ends the watch. */
export function watch(id: string, changed: (c: Comparison) => void, lost: () => void): () => void {
  const source = new EventSource(address(`${comparisonPath(id)}/events`));
  source.addEventListener("change", (event) => {
    const now = JSON.parse(event.data as string) as Comparison;
    // An EventSource would open the finished stream again, for ever.
    if (now.status !== "queued" && now.status !== "running") source.close();
    changed(now);
  });
  source.addEventListener("error", () => {
    if (source.readyState === EventSource.CLOSED) lost();
  });
  return () => source.close();
}

export type Report = "report.html" | "report.json" | "report.csv" | "report.xml" | "pairs.json";
export const reportAddress = (id: string, report: Report) => address(`${comparisonPath(id)}/${report}`);

// --- inputs -------------------------------------------------------------------------------------------------

export const folder = (path?: string) => json<Folder>("GET", address("/folder", { path }));

/** XMLHttpRequest, because fetch does not tell how far an upload has come. */
export function upload(file: File, progress: (share: number) => void, signal?: AbortSignal): Promise<Uploaded> {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("POST", address("/uploads", { name: file.name }));
    request.setRequestHeader("Content-Type", "application/octet-stream");
    request.upload.onprogress = (event) => progress(event.lengthComputable ? event.loaded / event.total : 0);
    request.onload = () => {
      if (request.status === 201) resolve(JSON.parse(request.responseText) as Uploaded);
      else reject(new ApiError(request.status, complaint(request.status, request.responseText)));
    };
    request.onerror = () => reject(new ApiError(0, NO_SERVER));
    request.onabort = () => reject(new DOMException("upload stopped", "AbortError"));
    signal?.addEventListener("abort", () => request.abort());
    request.send(file);
  });
}

// --- looking at a pair --------------------------------------------------------------------------------------

export const pair = (id: string, index: number, signal?: AbortSignal) =>
  json<PairDetail>("GET", pairAddress(id, index), undefined, signal);

function headerShape(response: Response): number[] {
  const text = response.headers.get("X-Tdbg-Shape") ?? "";
  return text === "" ? [] : text.split(",").map(Number);
}

/** A part of a tensor: a slice of its shape, or a range of it flattened. */
export type Part = { slice: string } | { flat: string };

export async function values(id: string, index: number, part: Part, signal?: AbortSignal): Promise<Values> {
  const response = await send("GET", pairAddress(id, index, "/values", part), undefined, signal);
  const sides = response.headers.get("X-Tdbg-Sides") ?? "ab";
  const all = new Float64Array(await response.arrayBuffer());
  const shape = headerShape(response);
  if (sides === "a") return { shape, a: all, b: null, difference: null };
  if (sides === "b") return { shape, a: null, b: all, difference: null };
  const count = all.length / 3;
  return { shape, a: all.subarray(0, count), b: all.subarray(count, 2 * count), difference: all.subarray(2 * count) };
}

export const mapped = (id: string, index: number, a: string, b: string, signal?: AbortSignal) =>
  json<Mapped>("GET", pairAddress(id, index, "/mapped", { a, b }), undefined, signal);

export const worst = async (id: string, index: number, count: number, signal?: AbortSignal) =>
  (await json<{ worst: WorstElement[] }>("GET", pairAddress(id, index, "/worst", { count }), undefined, signal)).worst;

export interface Search {
  side: "a" | "b";
  low?: number;
  high?: number;
  what?: "nan" | "inf" | "zero";
  from?: number;
  limit?: number;
}

export const find = (id: string, index: number, search: Search, signal?: AbortSignal) =>
  json<Found>("GET", pairAddress(id, index, "/find", { ...search }), undefined, signal);

export const histogram = (id: string, index: number, bins: number, signal?: AbortSignal) =>
  json<Histogram>("GET", pairAddress(id, index, "/histogram", { bins }), undefined, signal);

export const density = (id: string, index: number, size: number, signal?: AbortSignal) =>
  json<Density>("GET", pairAddress(id, index, "/density", { size }), undefined, signal);

export const profile = async (id: string, index: number, signal?: AbortSignal) =>
  (await json<{ axes: (number[] | null)[] }>("GET", pairAddress(id, index, "/profile"), undefined, signal)).axes;

export interface TileRequest {
  view: string;
  width?: number;
  transpose?: 0 | 1;
  level: number;
  x: number;
  y: number;
  what: Which;
  reduce: "mean" | "max";
}

export async function tile(id: string, index: number, request: TileRequest, signal?: AbortSignal): Promise<Tile> {
  const response = await send("GET", pairAddress(id, index, "/tile", { ...request }), undefined, signal);
  const [rows = 0, columns = 0] = headerShape(response);
  return { rows, columns, values: new Float32Array(await response.arrayBuffer()) };
}

export const sliceAddress = (id: string, index: number, side: Which, part: Part, format: "npy" | "csv") =>
  pairAddress(id, index, "/export", { side, ...part, format });

// --- recorded runs ------------------------------------------------------------------------------------------

export const runs = (path?: string) => json<RunList>("GET", address("/runs", { path }));

/** Tells what is new of a run, beginning with all there is. The browser comes back by itself after a break. */
export function followRun(path: string, news: (n: RunNews) => void, connected: (yes: boolean) => void, refused: () => void): () => void {
  const source = new EventSource(address("/run/events", { path }));
  source.addEventListener("open", () => connected(true));
  source.addEventListener("run", (event) => news(JSON.parse(event.data as string) as RunNews));
  source.addEventListener("error", () => (source.readyState === EventSource.CLOSED ? refused() : connected(false)));
  return () => source.close();
}

export const run = (path: string) => json<RunNews>("GET", address("/run", { path }));
export const controlRun = (path: string, request: ControlRequest) =>
  json<RunNews>("POST", address("/run/control"), { path, ...request });
