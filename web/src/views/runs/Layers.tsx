// Where the time goes, layer by layer: the part of each that no layer inside it explains.
import { useState } from "preact/hooks";
import { count, duration, percent, plural } from "../../format";
import { Name } from "../../ui/Name";
import { layers } from "./run";

const FEW = 12;

export function Layers() {
  const [all, setAll] = useState(false);
  const found = layers.value;
  if (!found || found.rows.length === 0) return null;
  const rows = all ? found.rows : found.rows.slice(0, FEW);
  const share = (ns: number) => (found.self_ns > 0 ? ns / found.self_ns : 0);
  return (
    <section class="panel run-section" aria-label="Layer times">
      <header><h2>Layer times</h2><span class="dim">{duration(found.self_ns / 1e9)} in {plural(found.count, "scope")}</span></header>
      <table class="layer-table">
        <thead><tr><th scope="col">layer</th><th scope="col" class="number">calls</th><th scope="col" class="number">per call</th><th scope="col" class="number">total</th><th scope="col" class="number">self</th><th scope="col">share</th></tr></thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.path}>
              <td class="mono"><Name text={row.path} /></td>
              <td class="number">{count(row.calls)}</td>
              <td class="number">{duration(row.total_ns / row.calls / 1e9)}</td>
              <td class="number">{duration(row.total_ns / 1e9)}</td>
              <td class="number">{duration(row.self_ns / 1e9)}</td>
              <td><span class="share"><span class="track"><span class="fill" style={{ width: `${share(row.self_ns) * 100}%` }} /></span>{percent(share(row.self_ns))}</span></td>
            </tr>
          ))}
        </tbody>
      </table>
      {found.rows.length > FEW && <p><button type="button" aria-expanded={all} onClick={() => setAll(!all)}>{all ? "Fewer" : `All ${found.rows.length}`}</button></p>}
    </section>
  );
}
