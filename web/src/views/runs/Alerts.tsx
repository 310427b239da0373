// What the rules found, the first offence first: what follows is often its consequence.
import { useState } from "preact/hooks";
import { count, plural } from "../../format";
import type { Alert } from "../../model";
import { Mark } from "../../ui/Mark";
import { Name } from "../../ui/Name";
import { alerts } from "./run";

const FEW = 6;

const where = (alert: Alert) => (alert.step === null ? "in the step under way" : `at step ${alert.step}`);

function Row({ alert }: { alert: Alert }) {
  return (
    <li>
      <Mark verdict="error" />
      <span class="alert-name"><Name text={alert.name} /></span>
      <span class="dim alert-step">{alert.step === null ? "now" : `step ${alert.step}`}</span>
      <span class="alert-what"><b>{alert.rule}</b> <span class="dim">{alert.text}{alert.times > 1 ? `; ${count(alert.times)} times` : ""}</span></span>
    </li>
  );
}

export function Alerts() {
  const [all, setAll] = useState(false);
  const found = alerts.value;
  const first = found?.rows[0];
  if (!found || !first)
    return (
      <section class="panel first-card" aria-label="Alerts">
        <p class="eyebrow">Alerts</p>
        <h2>Nothing found</h2>
        <p class="facts">Thirteen rules watch this run: NaN and infinities, gradients, dead and saturated activations, a loss that does not fall.</p>
      </section>
    );
  const rest = found.rows.slice(1), shown = all ? rest : rest.slice(0, FEW);
  return (
    <section class="panel first-card diverged" aria-label="Alerts">
      <p class="eyebrow">First alert, {where(first)}</p>
      <h2>{first.name}</h2>
      <p class="facts">{first.what}: <b>{first.text}</b>{first.times > 1 ? `, ${count(first.times)} times` : ""}</p>
      {rest.length > 0 && <ul class="alert-list">{shown.map((alert) => <Row key={alert.rule + alert.name} alert={alert} />)}</ul>}
      {rest.length > FEW && <p><button type="button" aria-expanded={all} onClick={() => setAll(!all)}>{all ? "Fewer" : `All ${plural(found.count, "alert")}`}</button></p>}
    </section>
  );
}
