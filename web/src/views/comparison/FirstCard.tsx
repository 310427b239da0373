// The answer in one card: where the two part first, by how much, what it looks like. Or that they do not.
import { count, exact, kindWords, percent, placeOf, plural, shape, shareText, short } from "../../format";
import type { DiffResult, Pair } from "../../model";
import { openFirstDivergence } from "../../pairs/list";
import { doubtOf, foundBy, isRenamed } from "../../pairs/layers";
import { errorOf, findingsOf, isLost, timesFloor } from "../../pairs/measure";
import { pairAddress } from "../../router";
import { Name } from "../../ui/Name";
import { coverageWords, isEnough } from "./coverage";
import { startPairing } from "./pairing";
import { settingsOpen } from "./SettingsPanel";

function Size({ pair }: { pair: Pair }) {
  const m = pair.metrics;
  if (!m) return null;
  const times = timesFloor(pair);
  if (isLost(pair)) {
    const elsewhere = m.nan_a === m.nan_b && m.inf_a === m.inf_b ? ", at other places or with another sign" : "";
    return <p class="facts">NaN: <b>{m.nan_a}</b> in A, <b>{m.nan_b}</b> in B; infinite: <b>{m.inf_a}</b> in A, <b>{m.inf_b}</b> in B{elsewhere}</p>;
  }
  return (
    <p class="facts">
      relative error <b title={exact(m.rel_l2)}>{short(m.rel_l2)}</b>
      {times !== null && <>, <b>{short(times)} ×</b> the noise floor</>}
      {m.argmax && <>; largest difference <b title={exact(m.max_abs)}>{short(m.max_abs)}</b>{m.argmax.length > 0 && <> at <span class="mono">{shape(m.argmax)}</span></>}</>}
    </p>
  );
}

function Findings({ pair }: { pair: Pair }) {
  return (
    <ol class="findings">
      {findingsOf(pair).slice(0, 3).map((finding) => (
        <li key={finding.kind}>
          <b class="kind">{kindWords(finding.kind)}</b>
          {finding.kind === "unknown" ? null : <span class="meter" title={`confidence ${exact(finding.confidence)}`}><span class="track"><span class="fill" style={{ width: `${finding.confidence * 100}%` }} /></span>{percent(finding.confidence)}</span>}
          <span class="why">{finding.detail}</span>
        </li>
      ))}
    </ol>
  );
}

/** A long name in a heading goes on in the next line behind a separator, not within a word. */
function Breakable({ text }: { text: string }) {
  return <>{text.split(/(?<=[._/:])/).map((part, at) => <>{at > 0 && <wbr />}{part}</>)}</>;
}

/** The other name, and whether it is one at all: of what is told about the pair nothing holds if it is none. */
function Partner({ pair }: { pair: Pair }) {
  const sure = doubtOf(pair);
  return (
    <>
      {isRenamed(pair) && <p class="facts other">in B <span class="mono"><Name text={pair.b!.name} /></span></p>}
      {sure !== null && <p class="facts doubt">The two may not belong together: paired by {foundBy(pair.strategy)}, {shareText(sure)} sure{pair.evidence && <> ({pair.evidence})</>}.</p>}
    </>
  );
}

const NAMED = 3;

/** What nobody compared, in front of the first divergence. */
function Between({ between }: { between: NonNullable<NonNullable<DiffResult["first_divergence"]>["unpaired_before"]> }) {
  const names = [...between.a, ...between.b].slice(0, NAMED), more = between.count - names.length;
  return (
    <div class="facts">
      <p>Before it, {between.count === 1 ? "1 tensor has" : `${count(between.count)} tensors have`} no partner: the mistake may be in there.</p>
      <ul class="between mono">
        {names.map((name) => <li key={name}><Name text={name} /></li>)}
        {more > 0 && <li>and {count(more)} more</li>}
      </ul>
    </div>
  );
}

function Diverged({ id, pair, result }: { id: string; pair: Pair; result: DiffResult }) {
  const between = result.first_divergence?.unpaired_before;
  return (
    <>
      <p class="eyebrow">{result.order === "unknown" ? "Largest divergence" : "First divergence"}</p>
      <h2><a href={pairAddress(id, pair.index)} onClick={(event) => { event.preventDefault(); openFirstDivergence(); }}><Breakable text={placeOf(pair)} /></a></h2>
      <Partner pair={pair} />
      <Size pair={pair} />
      <Findings pair={pair} />
      {between && <Between between={between} />}
      {!isEnough(result.summary) && <p class="facts doubt">Only {coverageWords(result.summary)}: the first mistake may be in what has none.</p>}
      <p><button type="button" class="primary" onClick={openFirstDivergence}>Open it <kbd>g</kbd></button></p>
    </>
  );
}

/** The largest error of what agrees: how close it was. */
function Closest({ result }: { result: DiffResult }) {
  const compared = result.pairs.filter((pair) => Number.isFinite(errorOf(pair)));
  if (compared.length === 0) return null;
  const worst = compared.reduce((x, y) => (errorOf(y) > errorOf(x) ? y : x));
  return <p class="facts">The largest relative error is <b>{short(errorOf(worst))}</b>, at {placeOf(worst)}.</p>;
}

function Outcome({ result }: { result: DiffResult }) {
  const { summary } = result;
  if (summary.pairs === 0 || summary.pairs === summary.only_a + summary.only_b)
    return (
      <>
        <p class="eyebrow">Nothing to compare</p>
        <h2>No tensor of A has a partner in B</h2>
        <p class="facts">Another way of matching, a regular expression or pairs made by hand may help.</p>
        <p><button type="button" class="primary" onClick={() => (settingsOpen.value = true)}>Change the matching</button></p>
      </>
    );
  if (!isEnough(summary))
    return (
      <>
        <p class="eyebrow">No answer</p>
        <h2>Not enough is paired to say</h2>
        <p class="facts">Only {coverageWords(summary)}. What is paired shows no divergence; the rest was compared with nothing.</p>
        <p class="buttons">
          <button type="button" class="primary" onClick={() => (settingsOpen.value = true)}>Change the matching</button>
          {summary.only_a > 0 && summary.only_b > 0 && <button type="button" onClick={() => startPairing(null)}>Pair by hand…</button>}
        </p>
      </>
    );
  const compared = summary.identical + summary.within;
  if (summary.errors > 0)
    return (
      <>
        <p class="eyebrow">Not all could be compared</p>
        <h2>{plural(summary.errors, "pair")} could not be compared</h2>
        <p class="facts">The other {compared} agree; {coverageWords(summary)}.</p>
      </>
    );
  return (
    <>
      <p class="eyebrow">No divergence</p>
      <h2>They agree</h2>
      {summary.within === 0 ? <p class="facts">Every value of {summary.identical === 1 ? "the pair" : `all ${count(summary.identical)} pairs`} is the same.</p>
        : <p class="facts">{plural(summary.identical, "pair")} identical, {count(summary.within)} within what rounding allows.</p>}
      {summary.coverage && (summary.coverage.a < 1 || summary.coverage.b < 1) && <p class="facts">{coverageWords(summary)}.</p>}
      {summary.within > 0 && <Closest result={result} />}
    </>
  );
}

export function FirstCard({ id, result }: { id: string; result: DiffResult }) {
  const first = result.first_divergence && result.pairs[result.first_divergence.index];
  const kind = first ? " diverged" : isEnough(result.summary) ? "" : " unsure";
  return (
    <section class={`panel first-card${kind}`} aria-label="Outcome">
      {first ? <Diverged id={id} pair={first} result={result} /> : <Outcome result={result} />}
    </section>
  );
}
