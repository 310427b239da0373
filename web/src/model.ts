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
  first_divergence: { index: number; layer: number | null; stage: string; name: string; diagnosis: Diagnosis[] } | null;
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
