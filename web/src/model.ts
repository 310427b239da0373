// What the server says, as docs/api.md and docs/diff.md have it. Types only.

/** JSON has no NaN and no infinities: they come as strings. format.ts reads and writes them. */
export type Num = number | "nan" | "inf" | "-inf";

export type Verdict = "identical" | "within" | "diverged" | "error" | "only_a" | "only_b";
export type Status = "queued" | "running" | "done" | "failed" | "cancelled";

export interface ServerStatus {
  service: string;
  version: string;
  ui: boolean;
  roots: string[];
  limits: { upload: number };
  start: string | null;
  run: string | null;
}

export type Source = { path: string } | { upload: string; tensor?: string };

export interface Side {
  name: string;
  path: string;
  upload: string | null;
  changed: boolean;
  missing: boolean;
}

export interface ManualPair {
  a: string;
  b: string;
  /** Of a fused tensor: which part, of how many. */
  a_part?: [number, number];
  b_part?: [number, number];
}

export interface Settings {
  match?: string;
  threshold?: number;
  policy?: "noise" | "strict";
  rtol?: number;
  atol?: number;
  reference?: string;
  layout?: string;
  top?: number;
  coverage?: number;
  /** What is in a file of names, or its object. */
  names?: string | Record<string, string>;
  pairs?: ManualPair[];
}

export interface Summary {
  pairs: number;
  identical: number;
  within: number;
  diverged: number;
  errors: number;
  only_a: number;
  only_b: number;
  /** Share of each side that has a partner; results of older servers have none. */
  coverage?: { a: number; b: number };
  enough?: boolean;
  /** Of an exploration. */
  tensors?: number;
  bytes?: number;
}

export interface Comparison {
  id: string;
  title: string;
  status: Status;
  error: string | null;
  created: number;
  kind: "diff" | "explore";
  a: Side;
  b: Side | null;
  settings: Settings;
  progress: { done: number; total: number };
  summary: Summary | null;
  first: { index: number; name: string; kind: string } | null;
  /** Of its result: another number is another result, whose pairs may have other indices. */
  generation: number;
}

export interface SideStats {
  mean: Num;
  std: Num;
  min: Num;
  max: Num;
  norm: Num;
  zeros: number;
}

export interface Metrics {
  max_abs: Num;
  mean_abs: Num;
  max_rel: Num;
  mean_rel: Num;
  mse: Num;
  rmse: Num;
  cosine: Num;
  rel_l2: Num;
  snr_db: Num;
  beyond: number;
  count: number;
  nan_a: number;
  nan_b: number;
  inf_a: number;
  inf_b: number;
  argmax: number[] | null;
  argmax_a: Num;
  argmax_b: Num;
  max_ulp: number | null;
  a: SideStats;
  b: SideStats;
}

export interface TensorInfo {
  name: string;
  dtype: string;
  shape: number[];
  shards?: number;
  experts?: number;
}

export interface Diagnosis {
  kind: string;
  confidence: number;
  detail: string;
}

export interface Layout {
  shape: number[];
  steps: string[];
  by_value: boolean;
  repaired?: boolean;
}

export interface Pair {
  index: number;
  layer: number | null;
  stage: string;
  name: string;
  strategy: string;
  /** How likely the two belong together, and what speaks for it. */
  sure?: number;
  evidence?: string | null;
  /** All names of a tensor that has several, the best first. */
  aliases?: { a: string[]; b: string[] };
  /** The names with {L} for the layer. */
  template?: { a: string | null; b: string | null } | null;
  verdict: Verdict;
  reason: string;
  a: TensorInfo | null;
  b: TensorInfo | null;
  layout: Layout | null;
  metrics: Metrics | null;
  origin?: "born" | "inherited";
  floor?: number;
  worst?: { index: number[]; a: Num; b: Num }[];
  profile?: number[][];
  diagnosis?: Diagnosis[];
}

export interface Skip {
  path: string;
  name: string;
  reason: string;
}

export interface DiffResult {
  version: number;
  a: { path: string; tensors: number };
  b: { path: string; tensors: number };
  summary: Summary;
  policy: { kind: string; rtol: number | null; atol: number | null; reference: string | null };
  order?: "stages" | "file" | "sidecar" | "times" | "names" | "unknown";
  first_divergence: { index: number; layer: number | null; stage: string; name: string; diagnosis: Diagnosis[]; unpaired_before?: { a: string[]; b: string[]; count: number } } | null;
  layer_offset?: number;
  notes: string[];
  pairs: Pair[];
  skipped: Skip[];
}

/** One tensor of `tdbg stats --json`. */
export interface TensorStats extends TensorInfo {
  path: string;
  format: string;
  bytes: number;
  count: number;
  finite: number;
  nan: number;
  inf: number;
  zeros: number;
  mean: Num;
  std: Num;
  min: Num;
  max: Num;
  absmax: Num;
  norm: Num;
}

export interface ExploreResult {
  version: number;
  tensors: TensorStats[];
  skipped: Skip[];
}

export interface Folder {
  /** Null: the list of the roots. */
  path: string | null;
  parent: string | null;
  entries: { name: string; path: string; kind: "file" | "folder"; bytes: number }[];
}

export interface Uploaded {
  id: string;
  name: string;
  bytes: number;
  sha256: string;
}

/** The page's own notes on a comparison, kept by the server. */
export interface PageState {
  /** Indices of pairs in the order somebody dragged them into. */
  order?: number[];
  /** Slices of both sides that were mapped by hand, by the index of the pair. */
  mappings?: Record<number, { a: string; b: string }>;
}

// --- looking at a pair --------------------------------------------------------------------------------------

export interface PairDetail {
  index: number;
  name: string;
  shape: number[];
  /** Complex numbers: the last axis of `shape` holds their real and imaginary parts. */
  as_real: boolean;
  a: TensorInfo | null;
  b: TensorInfo | null;
  layout: Layout | null;
  metrics: Metrics | null;
  a_stats: TensorStats | null;
  b_stats: TensorStats | null;
}

export type Which = "a" | "b" | "difference";

/** Arrays of one shape; the sides that are there. */
export interface Values {
  shape: number[];
  a: Float64Array | null;
  b: Float64Array | null;
  difference: Float64Array | null;
}

export interface MappedSide {
  shape: number[];
  values: Num[];
  stats: SideStats;
}

export interface Mapped {
  a: MappedSide | null;
  b: MappedSide | null;
  difference: { max_abs: Num; mean_abs: Num; max_rel: Num; mean_rel: Num; mse: Num; cosine: Num; count: number } | null;
}

export interface WorstElement {
  index: number[];
  a: Num;
  b: Num;
  difference: Num;
}

export interface Found {
  places: { index: number[]; flat: number; value: Num }[];
  next: number | null;
}

export interface Histogram {
  edges: number[];
  a: number[] | null;
  b: number[] | null;
}

export interface Density {
  low: number;
  high: number;
  size: number;
  counts: number[];
}

export interface Tile {
  rows: number;
  columns: number;
  values: Float32Array;
}

// --- recorded runs ------------------------------------------------------------------------------------------

export interface RunFacts {
  program: string;
  host: string;
  pid: number;
  rank: number;
  world: number;
  started: number;
  ended_ns: number;
  state: "ended" | "running" | "broken off";
  capture: string;
}

export interface ListedRun extends RunFacts {
  path: string;
}

export interface RunList {
  runs: ListedRun[];
  cut: boolean;
}

/** [step, value], or [step, low, high, last] where a point stands for many. */
export type TrailPoint = [number, Num] | [number, Num, Num, Num];

/** A scalar, or the root mean square of a gradient. */
export interface Track {
  name: string;
  last: Num;
  step: number;
  count: number;
  points: TrailPoint[];
}

export interface Progress {
  steps: number;
  step: number | null;
  step_ns: number;
  rss: number;
  tensors: number;
  scalars: number;
  last_ns: number;
}

export interface LayerTime {
  path: string;
  calls: number;
  total_ns: number;
  self_ns: number;
}

export interface Alert {
  rule: string;
  kind: "tensor" | "scalar";
  name: string;
  step: number | null;
  number: Num;
  threshold: number;
  times: number;
  what: string;
  text: string;
}

export interface RunNote {
  kind: string;
  text: string;
  step: number;
  time_ns: number;
}

export interface Breakpoint {
  number: number;
  pattern: string;
  when?: string | null;
  enabled: boolean;
  hits: number;
}

export interface Stop {
  kind: "tensor" | "scope";
  name: string;
  step?: number;
  reason: string;
}

/** The live process, as far as it can be talked to. */
export interface Control {
  live: boolean;
  attached: boolean;
  state?: "running" | "stopped";
  stop?: Stop;
  breakpoints?: Breakpoint[];
}

/** What changed of a run; the first one has all of it. Of `scalars` and `gradients` only those that went on. */
export interface RunNews {
  path: string;
  epoch: number;
  serial: number;
  facts?: RunFacts;
  progress: Progress;
  scalars: Track[];
  gradients: Track[];
  steps?: { seconds: TrailPoint[]; memory: TrailPoint[] };
  layers?: { count: number; self_ns: number; rows: LayerTime[] };
  alerts?: { count: number; rows: Alert[] };
  notes?: RunNote[];
  control?: Control;
}

export type ControlRequest =
  | { do: "attach" | "detach" | "continue" | "step" | "next" }
  | { do: "break"; pattern: string; when?: string }
  | { do: "delete" | "enable" | "disable"; number: string };
