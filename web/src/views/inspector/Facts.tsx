// What the comparison found of this pair: verdict and rule, layout in words, diagnosis with evidence, metrics, and
// both sides' statistics.
import type { ComponentChildren } from "preact";
import { count, exact, kindWords, plural, shape, shareText, short, similarity, statistic } from "../../format";
import type { Diagnosis, Layout, Num, Pair, PairDetail, TensorInfo, TensorStats, Verdict } from "../../model";
import { aliasesOf, doubtOf, foundBy } from "../../pairs/layers";
import { isLost, measured } from "../../pairs/measure";
import { Mark } from "../../ui/Mark";
import { stepWords } from "./layout_words";

const verdictWords: Record<Verdict, string> = {
  identical: "identical", within: "within", diverged: "diverged", error: "not compared", only_a: "only in A", only_b: "only in B",
};

/** `title` is the name in the heading: said once is enough. */
export function SideLine({ letter, tensor, title }: { letter: string; tensor: TensorInfo; title: string | undefined }) {
  return (
    <p class="side-line">
      {letter && <b class="letter">{letter}</b>}
      {tensor.name !== title && <span class="mono side-name">{tensor.name}</span>}
      <span class="mono dim">{tensor.dtype}</span>
      <span class="mono">{shape(tensor.shape)}</span>
      {tensor.shards !== undefined && <span class="dim">{plural(tensor.shards, "shard")}</span>}
      {tensor.experts !== undefined && <span class="dim">{plural(tensor.experts, "expert")}</span>}
    </p>
  );
}

export function VerdictLine({ pair }: { pair: Pair }) {
  return (
    <p class="verdict-line">
      <b class={`verdict ${pair.verdict}`}><Mark verdict={pair.verdict} /> {verdictWords[pair.verdict]}</b>
      <span>{pair.reason}</span>
      {pair.origin && <span class="dim">{pair.origin === "born" ? "born here" : "inherited from what feeds it"}</span>}
    </p>
  );
}

const SOME = 4;

function Also({ pair, side }: { pair: Pair; side: "a" | "b" }) {
  const names = aliasesOf(pair, side), letter = side.toUpperCase();
  if (names.length === 0) return null;
  return (
    <p class="pairing-line" title={names.join("\n")}>
      <span class="dim">{letter} is also</span>
      <span>
        {names.slice(0, SOME).map((name, i) => <span key={name}>{i > 0 && ", "}<span class="mono">{name}</span></span>)}
        {names.length > SOME && <span class="dim"> and {count(names.length - SOME)} more</span>}
      </span>
    </p>
  );
}

/** How the two were found, and how sure that is; other names of the same values. */
export function PairingLines({ pair }: { pair: Pair }) {
  const doubt = doubtOf(pair);
  return (
    <>
      {pair.a && pair.b && (
        <p class="pairing-line">
          <span class="dim">Paired by {foundBy(pair.strategy)}</span>
          {doubt !== null && <span class="tag doubt">{shareText(doubt)} sure</span>}
          {pair.evidence && <span class="dim">{pair.evidence}</span>}
        </p>
      )}
      <Also pair={pair} side="a" />
      <Also pair={pair} side="b" />
    </>
  );
}

export function LayoutLine({ layout }: { layout: Layout }) {
  if (layout.steps.length === 0) return null;
  return (
    <p class="layout-line">
      <span class="dim">Lined up: </span>
      {layout.steps.map((step) => stepWords(step)).join("; ")}
      <span class="dim">
        {" "}→ <span class="mono">{shape(layout.shape)}</span>
        {layout.by_value && ", chosen by the values"}
        {layout.repaired && ", because what follows agrees"}
      </span>
    </p>
  );
}

export function Diagnoses({ list }: { list: readonly Diagnosis[] }) {
  return (
    <ol class="diagnoses" aria-label="Diagnosis, the likeliest first">
      {list.map((d, i) => (
        <li key={i}>
          <b>{kindWords(d.kind)}</b>
          {d.kind === "unknown" ? null : <span class="meter" role="img" title={`confidence ${d.confidence}`} aria-label={`confidence ${d.confidence}`}><span class="fill" style={{ width: `${d.confidence * 100}%` }} /></span>}
          <span>{d.detail}</span>
        </li>
      ))}
    </ol>
  );
}

function Fact({ name, title, children }: { name: string; title?: string; children: ComponentChildren }) {
  return <div><dt>{name}</dt><dd class="mono" title={title}>{children}</dd></div>;
}

const metricRows = [
  ["max_abs", "max |d|"], ["mean_abs", "mean |d|"], ["max_rel", "max relative"], ["mean_rel", "mean relative"], ["rmse", "RMSE"],
  ["mse", "MSE"], ["rel_l2", "relative L2"], ["snr_db", "SNR, dB"],
] as const;

export function MetricsTable({ detail, pair }: { detail: PairDetail; pair: Pair | null }) {
  const m = detail.metrics;
  if (!m || m.count === 0) return null;
  if (!measured(m)) return <section aria-label="Difference"><h3>Difference</h3><p class="dim">No two values at one place are both finite: nothing to measure.</p></section>;
  return (
    <section aria-label="Difference">
      <h3>Difference</h3>
      {pair && isLost(pair) && <p class="dim">Where both sides are finite; elsewhere they are not the same.</p>}
      <dl class="figures">
        {metricRows.map(([key, name]) => <Fact key={key} name={name} title={exact(m[key])}>{short(m[key], 4)}</Fact>)}
        {pair?.floor !== undefined && <Fact name="allowed" title={exact(pair.floor)}>{short(pair.floor, 4)}</Fact>}
        <Fact name="cosine" title={exact(m.cosine)}>{similarity(m.cosine)}</Fact>
        <Fact name="beyond">{count(m.beyond)} of {count(m.count)}</Fact>
        {m.max_ulp !== null && <Fact name="max ulp" title={exact(m.max_ulp)}>{Number.isSafeInteger(m.max_ulp) ? count(m.max_ulp) : short(m.max_ulp, 4)}</Fact>}
      </dl>
    </section>
  );
}

type StatKey = "mean" | "std" | "min" | "max" | "norm" | "count" | "zeros" | "nan" | "inf";
const statRows: readonly StatKey[] = ["mean", "std", "min", "max", "norm", "count", "zeros", "nan", "inf"];
const isCount = (key: StatKey) => key === "count" || key === "zeros" || key === "nan" || key === "inf";
const statText = (key: StatKey, value: Num) => (isCount(key) ? count(Number(value)) : statistic(value, 4));

export function StatsTable({ a, b }: { a: TensorStats | null; b: TensorStats | null }) {
  const sides = [a, b].filter((side) => side !== null);
  if (sides.length === 0) return null;
  return (
    <section aria-label="Statistics">
      <h3>Statistics</h3>
      <table class="stats-table">
        <thead><tr><td />{a && <th scope="col">A</th>}{b && <th scope="col">B</th>}</tr></thead>
        <tbody>
          {statRows.map((key) => (
            <tr key={key} class={(key === "nan" || key === "inf") && sides.some((s) => s[key] > 0) ? "alarm" : undefined}>
              <th scope="row">{key}</th>
              {sides.map((side, i) => <td key={i} class="number" title={exact(side[key])}>{statText(key, side[key])}</td>)}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
