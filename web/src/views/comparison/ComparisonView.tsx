// A comparison: header, overview, the list of pairs, and the inspector of the one that is open.
import { useEffect } from "preact/hooks";
import { close, comparison, diff, explored, open, trouble } from "../../state";
import { Explorer } from "../explorer/Explorer";
import { Inspector } from "../inspector/Inspector";

interface Props {
  id: string;
  pair: number | null;
}

export function ComparisonView({ id, pair }: Props) {
  useEffect(() => {
    void open(id);
    return close;
  }, [id]);
  const now = comparison.value;
  if (trouble.value) return <main class="message-page"><p role="alert">{trouble.value}</p></main>;
  if (!now) return <main class="message-page" aria-busy="true"><p>Loading…</p></main>;
  return (
    <main>
      {explored.value && <Explorer comparison={now} result={explored.value} index={pair} />}
      {diff.value && pair !== null &&
        <Inspector key={pair} comparison={now} index={pair} pair={diff.value.pairs[pair] ?? null} tensor={null} />}
    </main>
  );
}
