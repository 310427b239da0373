// Pairing by hand: what only A has on the left, what only B has on the right. Drag one onto the other, or choose
// one of each. Pairs made before are listed, and can be taken back.
import { useState } from "preact/hooks";
import { shape } from "../../format";
import type { ManualPair, Pair, TensorInfo } from "../../model";
import { comparison, diff } from "../../state";
import { Dialog } from "../../ui/Dialog";
import { Name } from "../../ui/Name";
import { applyPairs, pairByHand, pairingOpen, templatesOf } from "./pairing";

const close = () => (pairingOpen.value = null);
const sideOf = (pair: Pair): TensorInfo => (pair.a ?? pair.b)!;
const sameShape = (x: Pair, y: Pair) => [...sideOf(x).shape].sort().join() === [...sideOf(y).shape].sort().join();

interface ColumnProps {
  title: string;
  pairs: Pair[];
  chosen: Pair | null;
  other: Pair | null;
  onChoose: (pair: Pair) => void;
  onDrop: (dragged: number, target: Pair) => void;
}

/** What has the shape of the one chosen on the other side comes first. */
function Column({ title, pairs, chosen, other, onChoose, onDrop }: ColumnProps) {
  const fits = (pair: Pair) => other !== null && sameShape(pair, other);
  const list = [...pairs].sort((x, y) => Number(fits(y)) - Number(fits(x)) || x.index - y.index);
  return (
    <section aria-label={title}>
      <h3>{title}</h3>
      <ul class="tensors">
        {list.map((pair) => (
          <li key={pair.index}>
            <button type="button" draggable aria-pressed={chosen === pair} class={fits(pair) ? "fits" : ""} onClick={() => onChoose(pair)}
              onDragStart={(event) => event.dataTransfer?.setData("text/plain", String(pair.index))}
              onDragOver={(event) => event.preventDefault()}
              onDrop={(event) => { event.preventDefault(); onDrop(Number(event.dataTransfer?.getData("text/plain")), pair); }}>
              <Name text={sideOf(pair).name} /><span class="dim mono">{shape(sideOf(pair).shape)}</span>
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Made({ pairs }: { pairs: ManualPair[] }) {
  return (
    <section aria-label="Paired by hand">
      <h3>Paired by hand</h3>
      <ul class="made">
        {pairs.map((pair) => (
          <li key={pair.a + "\0" + pair.b}>
            <Name text={pair.a} /><span class="dim">with</span><Name text={pair.b} />
            <button type="button" class="plain" onClick={() => { close(); void applyPairs(pairs.filter((other) => other !== pair)); }}>take back</button>
          </li>
        ))}
      </ul>
    </section>
  );
}

export function PairingDialog({ preset }: { preset: Pair | null }) {
  const pairs = diff.value?.pairs ?? [];
  const onlyA = pairs.filter((pair) => pair.verdict === "only_a"), onlyB = pairs.filter((pair) => pair.verdict === "only_b");
  const [a, setA] = useState<Pair | null>(preset?.verdict === "only_a" ? preset : null);
  const [b, setB] = useState<Pair | null>(preset?.verdict === "only_b" ? preset : null);
  const [busy, setBusy] = useState(false);
  const [every, setEvery] = useState(true);
  const templates = a && b ? templatesOf(a, b) : null;
  const pair = async (x: Pair, y: Pair) => {
    setBusy(true);
    if (await pairByHand(x, y, every)) close();
    else setBusy(false);
  };
  const drop = (dragged: number, target: Pair) => {
    const source = pairs[dragged];
    if (source && source.verdict !== target.verdict && (source.verdict === "only_a" || source.verdict === "only_b")) void pair(source, target);
  };
  const made = comparison.value?.settings.pairs ?? [];
  return (
    <Dialog title="Pair by hand" onClose={close} wide>
      {onlyA.length > 0 && onlyB.length > 0 ? (
        <>
          <p class="dim">Drag a tensor of one side onto one of the other, or choose one of each. Both are compared again at once.</p>
          <div class="columns">
            <Column title="Only in A" pairs={onlyA} chosen={a} other={b} onChoose={setA} onDrop={drop} />
            <Column title="Only in B" pairs={onlyB} chosen={b} other={a} onChoose={setB} onDrop={drop} />
          </div>
          <label class="every">
            <input type="checkbox" checked={every} onChange={(event) => setEvery(event.currentTarget.checked)} />
            <span>In every layer <span class="dim">{templates ? <span class="mono">{templates.a} with {templates.b}</span>
              : a && b ? "one of the two names has no layer: only these" : "where both names have a layer"}</span></span>
          </label>
          <div class="buttons"><button type="button" class="primary" disabled={!a || !b || busy} onClick={() => a && b && void pair(a, b)}>Pair and compare again</button></div>
        </>
      ) : <p class="dim">No tensor is left to be paired.</p>}
      {made.length > 0 && <Made pairs={made} />}
    </Dialog>
  );
}
