// The first page: what to compare, and what was compared before.
import { useEffect, useRef, useState } from "preact/hooks";
import * as api from "../../api";
import { bytes } from "../../format";
import type { Source } from "../../model";
import { go, query, setQuery } from "../../router";
import { message } from "../../state";
import { SwapIcon } from "../../ui/icons";
import { TopBar } from "../comparison/Header";
import { Recent } from "./Recent";
import { type Given, together } from "./given";
import { SourcePicker, type Choice } from "./SourcePicker";

type Tab = "compare" | "explore" | "mixed";
const TABS: Record<Tab, string> = { compare: "Compare two", explore: "Explore one", mixed: "Mixed" };
const INTRO: Record<Tab, string> = {
  compare: "Two dumps of one model: archives, folders or files, in any format tdbg reads. A is the reference.",
  explore: "One archive, folder or file: its tensors, their statistics and their values.",
  mixed: "A run against a single tensor, or one tensor against another. On a path, NAME picks a tensor and [slice] a part of it: /runs/a.zip:3_query[0, :16]",
};

const tabOf = (text: string | null): Tab => (text === "explore" || text === "mixed" ? text : "compare");

interface Side {
  choice: Choice | null;
  typed: string;
  progress: number | null;
  error: string | null;
}
const EMPTY: Side = { choice: null, typed: "", progress: null, error: null };

/** What a side is to be: what was chosen, or the path that stands in its field. */
const chosenOf = ({ choice, typed }: Side): Choice | null => choice ?? (typed.trim() ? { kind: "path", path: typed.trim() } : null);

function useSides() {
  const [sides, setSides] = useState<[Side, Side]>([EMPTY, EMPTY]);
  const change = (at: number, part: Partial<Side>) =>
    setSides(([a, b]) => (at === 0 ? [{ ...a, ...part }, b] : [a, { ...b, ...part }]));
  return { sides, setSides, change };
}

function Tabs({ tab }: { tab: Tab }) {
  return (
    <div class="tabs" role="tablist" aria-label="What to do">
      {(Object.keys(TABS) as Tab[]).map((key) => (
        <button key={key} type="button" role="tab" id={`tab-${key}`} aria-selected={key === tab} aria-controls="tab-panel" onClick={() => setQuery({ tab: key === "compare" ? null : key })}>{TABS[key]}</button>
      ))}
    </div>
  );
}

function Opening({ tab }: { tab: Tab }) {
  const { sides, setSides, change } = useSides();
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<string | null>(null);
  const [limit, setLimit] = useState<number | null>(null);
  useEffect(() => void api.status().then((status) => setLimit(status.limits.upload), () => setLimit(null)), []);
  const wanted = tab === "explore" ? 1 : 2;

  /** One is for the side it fell on; one for each side are shared out in the order they came; more belong together. */
  const take = (at: number, given: Given[]) => {
    const list = given.length > wanted ? [together(given)] : given;
    list.forEach((one, n) => change(list.length > 1 ? n : at, { choice: { kind: "file", ...one }, typed: "", progress: null, error: null }));
  };
  // One that is not wanted any more goes no further: when the other failed, and when somebody has left.
  const sending = useRef<AbortController | null>(null);
  useEffect(() => () => sending.current?.abort(), []);
  const send = async (at: number, stop: AbortSignal): Promise<Source> => {
    const choice = chosenOf(sides[at]!)!;
    if (choice.kind === "path") return { path: choice.path };
    try {
      change(at, { progress: 0, error: null });
      const done = await api.upload(choice.file, (progress) => !stop.aborted && change(at, { progress }), stop);
      return { upload: done.id };
    } catch (reason) {
      if (!stop.aborted) change(at, { error: message(reason) });
      throw reason;
    }
  };
  const begin = async () => {
    const mine = (sending.current = new AbortController());
    setBusy(true);
    setError(null);
    try {
      const sources = await Promise.all(Array.from({ length: wanted }, (_, at) => send(at, mine.signal)));
      if (mine.signal.aborted) return;
      const started = await api.start(sources[0]!, sources[1] ?? null);
      if (!mine.signal.aborted) go(`/c/${started.id}`);
    } catch (reason) {
      if (mine.signal.aborted) return;
      mine.abort();
      setError(message(reason));
      setSides(([a, b]) => [{ ...a, progress: null }, { ...b, progress: null }]);
      setBusy(false);
    }
  };
  const ready = sides.slice(0, wanted).every((side) => chosenOf(side) !== null);
  const hint = wanted === 2 ? "Drop files or a folder here, or both sides at once" : "Drop files or a folder here";
  const shown = sides.some((side) => side.error === error) ? null : error;
  return (
    <>
      <div class={`sources of-${wanted}`}>
        {Array.from({ length: wanted }, (_, at) => (
          <SourcePicker key={at} label={wanted === 1 ? "Input" : at === 0 ? "A, the reference" : "B"} hint={hint} {...sides[at]!}
            onChoose={(choice) => { setError(null); change(at, { choice, typed: "", error: null }); }}
            onType={(typed) => change(at, { typed, error: null })} onGiven={(given) => take(at, given)} onTrouble={(text) => change(at, { error: text })} />
        ))}
      </div>
      <div class="begin">
        <button type="button" class="primary" disabled={!ready || busy} onClick={() => void begin()}>{wanted === 2 ? "Compare" : "Explore"}</button>
        {wanted === 2 && <button type="button" disabled={busy} onClick={() => setSides(([a, b]) => [b, a])}><SwapIcon /> Swap A and B</button>}
        {limit !== null && <span class="dim">Uploads up to {bytes(limit)}. A path is opened in place, at any size.</span>}
        {shown && <p class="field-error" role="alert">{shown}</p>}
      </div>
    </>
  );
}

export function StartView() {
  const tab = tabOf(query.value.get("tab"));
  useEffect(() => void (document.title = "tdbg"), []);
  return (
    <div class="app">
      <TopBar>
        <h1 class="sides">Where do two runs part?</h1>
        <div class="actions"><a class="button" href="/runs">Recorded runs</a></div>
      </TopBar>
      <main class="pane start">
        <Tabs tab={tab} />
        <div role="tabpanel" id="tab-panel" aria-labelledby={`tab-${tab}`} class="opening">
          <p class="dim intro">{INTRO[tab]}</p>
          <Opening key={tab} tab={tab} />
        </div>
        <Recent />
      </main>
    </div>
  );
}
