// The live process: where it is held, what holds it, and how it goes on.
import { useState } from "preact/hooks";
import { plural } from "../../format";
import type { Breakpoint, Stop } from "../../model";
import { TrashIcon } from "../../ui/icons";
import { Name } from "../../ui/Name";
import { ask, control, facts } from "./run";

function Held({ stop }: { stop: Stop }) {
  return (
    <div class="held" role="status">
      <p>Stopped at {stop.kind === "scope" ? "scope " : ""}<b class="mono">{stop.name}</b>{stop.step === undefined ? "" : `, step ${stop.step}`}</p>
      <p class="dim">{stop.reason}</p>
      <p class="buttons">
        <button type="button" class="primary" onClick={() => void ask({ do: "continue" })}>Continue <kbd>c</kbd></button>
        <button type="button" onClick={() => void ask({ do: "step" })} title="To the next tensor">Step <kbd>s</kbd></button>
        <button type="button" onClick={() => void ask({ do: "next" })} title="To the next tensor that is no deeper">Next <kbd>n</kbd></button>
      </p>
    </div>
  );
}

function Row({ breakpoint }: { breakpoint: Breakpoint }) {
  const number = String(breakpoint.number), what = breakpoint.pattern + (breakpoint.when ? ` if ${breakpoint.when}` : "");
  return (
    <li>
      <input type="checkbox" checked={breakpoint.enabled} aria-label={`Breakpoint ${what} holds the run`} onChange={() => void ask({ do: breakpoint.enabled ? "disable" : "enable", number })} />
      <span class="mono break-what"><Name text={what} /></span>
      <span class="dim">{plural(breakpoint.hits, "hit")}</span>
      <button type="button" class="plain" title="Delete it" aria-label={`Delete breakpoint ${what}`} onClick={() => void ask({ do: "delete", number })}><TrashIcon /></button>
    </li>
  );
}

function Add() {
  const [pattern, setPattern] = useState("");
  const [when, setWhen] = useState("");
  const add = async (event: Event) => {
    event.preventDefault();
    if (await ask({ do: "break", pattern: pattern.trim() || "*", ...(when.trim() ? { when: when.trim() } : {}) })) setPattern("");
  };
  return (
    <form class="break-form" onSubmit={(event) => void add(event)}>
      <input value={pattern} placeholder="layers.*" aria-label="Tensors to stop at" onInput={(event) => setPattern(event.currentTarget.value)} />
      <input value={when} placeholder="nan or absmax > 1e4" aria-label="Condition" onInput={(event) => setWhen(event.currentTarget.value)} />
      <button type="submit">Break</button>
    </form>
  );
}

export function Breakpoints() {
  const now = control.value;
  if (!now?.live)
    return facts.value?.state === "running" ? (
      <section class="panel run-control" aria-label="Breakpoints">
        <h2>Breakpoints</h2>
        <p class="dim">This run serves no control socket, so it cannot be stopped.</p>
      </section>
    ) : null;
  const list = now.breakpoints ?? [];
  return (
    <section class="panel run-control" aria-label="Breakpoints">
      <header><h2>Breakpoints</h2>{now.attached && <button type="button" onClick={() => void ask({ do: "detach" })} title="The run goes on, and nothing holds it any more">Let go</button>}</header>
      {now.stop && <Held stop={now.stop} />}
      {list.length > 0 && <ul class="break-list">{list.map((breakpoint) => <Row key={breakpoint.number} breakpoint={breakpoint} />)}</ul>}
      <Add />
      {!now.attached && <p class="dim">A breakpoint holds the run while this page is open.</p>}
    </section>
  );
}
