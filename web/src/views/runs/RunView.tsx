// The dashboard of one run: what it is doing, what is wrong with it, its scalars, layers and gradients. It follows
// the run by itself.
import { useEffect, useState } from "preact/hooks";
import * as api from "../../api";
import { bytes, count, duration, plural, short } from "../../format";
import { useKeys } from "../../keys";
import type { RunFacts } from "../../model";
import { go, query, setQuery } from "../../router";
import { message } from "../../state";
import { Name } from "../../ui/Name";
import { notify } from "../../ui/Notices";
import { TopBar } from "../comparison/Header";
import { Alerts } from "./Alerts";
import { Breakpoints } from "./Breakpoints";
import { Chart } from "./Chart";
import { Gradients } from "./Gradients";
import { Layers } from "./Layers";
import * as run from "./run";

const runName = (path: string) => path.split("/").filter(Boolean).slice(-2).join("/") || path;

export function State({ facts, stopped = false }: { facts: Pick<RunFacts, "state">; stopped?: boolean }) {
  const word = stopped ? "stopped" : facts.state;
  return <span class={`run-state ${word.replace(" ", "-")}`}><i aria-hidden="true" />{word}</span>;
}

function Facts() {
  const now = run.progress.value, facts = run.facts.value;
  if (!now || !facts) return null;
  const end = facts.ended_ns > 0 ? facts.ended_ns : now.last_ns;
  return (
    <dl class="run-facts">
      <div><dt>step</dt><dd data-field="step">{now.step ?? "…"}</dd></div>
      <div><dt>per step</dt><dd>{now.steps ? duration(now.step_ns / 1e9) : "…"}</dd></div>
      <div><dt>{facts.state === "running" ? "running for" : "ran for"}</dt><dd>{duration(end / 1e9)}</dd></div>
      <div><dt>memory</dt><dd>{now.rss ? bytes(now.rss) : "…"}</dd></div>
      <div><dt>tensors</dt><dd>{count(now.tensors)}</dd></div>
      <div><dt>program</dt><dd><Name text={facts.program} title={`${facts.program}, process ${facts.pid} on ${facts.host}`} /></dd></div>
      {facts.world > 1 && <div><dt>rank</dt><dd>{facts.rank} of {facts.world}</dd></div>}
    </dl>
  );
}

function Scalars() {
  const log = query.value.get("log") === "1";
  const shown = run.scalars.value, steps = run.steps.value;
  return (
    <section class="run-section" aria-label="Scalars">
      <header>
        <h2>Scalars</h2>
        <button type="button" aria-pressed={log} onClick={toggleLog} title="Logarithmic scale (l)">log</button>
      </header>
      <div class="run-charts">
        {shown.map((track) => <Chart key={track.name} title={track.name} now={short(track.last, 4)} points={track.points} log={log} />)}
        {steps && steps.seconds.length > 0 && <Chart title="time per step" now={duration(run.progress.value!.step_ns / 1e9)} points={steps.seconds} log={log} label={duration} />}
        {steps && steps.memory.length > 0 && <Chart title="memory" now={bytes(run.progress.value!.rss)} points={steps.memory} label={bytes} />}
      </div>
      {shown.length === 0 && <p class="dim">No scalars yet: tdbg_scalar(run, "loss", step, value), or run.scalar in Python.</p>}
    </section>
  );
}

function Notes() {
  const notes = run.notes.value;
  if (notes.length === 0) return null;
  return (
    <section class="panel run-control" aria-label="Notes">
      <h2>Notes</h2>
      <ul class="note-list">{notes.slice(-8).reverse().map((note, at) => <li key={at}><b>{note.kind}</b> {note.text} <span class="dim">{duration(note.time_ns / 1e9)}</span></li>)}</ul>
    </section>
  );
}

const toggleLog = () => setQuery({ log: query.value.get("log") === "1" ? null : "1" });

function Board({ path }: { path: string }) {
  const stopped = run.control.value?.state === "stopped";
  const onlyStopped = (act: () => void) => () => stopped && act();
  useKeys("This run", [
    { keys: ["l"], does: "logarithmic scale, on and off", run: toggleLog },
    { keys: ["c"], does: "continue, where it is stopped", run: onlyStopped(() => void run.ask({ do: "continue" })) },
    { keys: ["s"], does: "to the next tensor", run: onlyStopped(() => void run.ask({ do: "step" })) },
    { keys: ["n"], does: "to the next tensor that is no deeper", run: onlyStopped(() => void run.ask({ do: "next" })) },
  ]);
  if (run.trouble.value) return <div class="standing"><h2>This run cannot be shown</h2><p class="reason">{run.trouble.value}</p><a class="button" href="/runs">Other runs</a></div>;
  if (!run.facts.value) return <p class="dim slow empty">Reading {path}</p>;
  return (
    <>
      {run.lost.value && <p class="banner" role="status">The server does not answer. What you see may be old; it goes on as soon as the server is back.</p>}
      <Facts />
      <div class="run-top">
        <Alerts />
        <div class="run-aside"><Breakpoints /><Notes /></div>
      </div>
      <Scalars />
      <div class="run-tables"><Layers /><Gradients /></div>
    </>
  );
}

export function RunView({ path }: { path: string }) {
  const [busy, setBusy] = useState(false);
  useEffect(() => run.openRun(path), [path]);
  useEffect(() => void (document.title = `${runName(path)} · tdbg`), [path]);
  const explore = async () => {
    setBusy(true);
    try {
      go(`/c/${(await api.start({ path }, null)).id}`);
    } catch (error) {
      notify(message(error), true);
      setBusy(false);
    }
  };
  const facts = run.facts.value, found = run.alerts.value?.count ?? 0;
  return (
    <div class="app">
      <TopBar>
        <h1 class="sides"><Name text={runName(path)} title={path} /></h1>
        {facts && <State facts={facts} stopped={run.control.value?.state === "stopped"} />}
        {found > 0 && <span class="run-found">{plural(found, "alert")}</span>}
        <div class="actions">
          <a class="button" href="/runs">All runs</a>
          <button type="button" disabled={busy || !facts} onClick={() => void explore()}>Explore tensors</button>
        </div>
      </TopBar>
      <main class="pane run-pane"><Board path={path} /></main>
    </div>
  );
}
