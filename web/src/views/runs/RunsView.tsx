// Recorded runs below the folders that may be opened, newest first.
import { useEffect, useState } from "preact/hooks";
import * as api from "../../api";
import { ago, duration } from "../../format";
import type { RunList } from "../../model";
import { runAddress } from "../../router";
import { message } from "../../state";
import { Name } from "../../ui/Name";
import { TopBar } from "../comparison/Header";
import { State } from "./RunView";

const REFRESH_MS = 2000;

export function RunsView({ path }: { path: string }) {
  const [list, setList] = useState<RunList | null>(null);
  const [error, setError] = useState<string | null>(null);
  useEffect(() => void (document.title = "Runs · tdbg"), []);
  useEffect(() => {
    let timer = 0, gone = false;
    const load = async () => {
      try {
        const found = await api.runs(path || undefined);
        if (!gone) setList(found);
        setError(null);
      } catch (reason) {
        setError(message(reason));
      }
      if (!gone) timer = window.setTimeout(() => void load(), REFRESH_MS);
    };
    void load();
    return () => {
      gone = true;
      window.clearTimeout(timer);
    };
  }, [path]);
  return (
    <div class="app">
      <TopBar><h1 class="sides">Recorded runs</h1></TopBar>
      <main class="pane start">
        {path && <p class="dim">In <span class="mono">{path}</span>. <a href="/runs">All runs</a></p>}
        {error && <p class="field-error" role="alert">{error}</p>}
        {list?.runs.length === 0 && (
          <div class="standing">
            <h2>No recorded run here</h2>
            <p class="dim">A program that uses the C API writes one with <code>TDBG_RUN=runs/a</code>, a PyTorch model with <code>tdbg.record(model, "runs/a")</code>.</p>
          </div>
        )}
        {list && list.runs.length > 0 && (
          <ul class="panel run-list">
            {list.runs.map((run) => (
              <li key={run.path}>
                <a href={runAddress(run.path)}><Name text={run.path} /></a>
                <span class="dim run-program"><Name text={run.program} title={`${run.program} on ${run.host}`} /></span>
                <State facts={run} />
                <span class="dim">{run.ended_ns > 0 ? duration(run.ended_ns / 1e9) : ""}</span>
                <time class="dim" dateTime={new Date(run.started * 1000).toISOString()}>{ago(run.started)}</time>
              </li>
            ))}
          </ul>
        )}
        {list?.cut && <p class="dim">There are more; name a folder in the address to see those in it.</p>}
      </main>
    </div>
  );
}
