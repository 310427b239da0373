// The run on screen, as its events have told it so far. One at a time; views read the signals, and only the
// functions here change them.
import { batch, signal } from "@preact/signals";
import * as api from "../../api";
import type { Control, ControlRequest, RunFacts, RunNews, RunNote, Progress, Track, TrailPoint } from "../../model";
import { message } from "../../state";
import { notify } from "../../ui/Notices";

export const facts = signal<RunFacts | null>(null);
export const progress = signal<Progress | null>(null);
export const scalars = signal<Track[]>([]);
export const gradients = signal<Track[]>([]);
export const steps = signal<{ seconds: TrailPoint[]; memory: TrailPoint[] } | null>(null);
export const layers = signal<RunNews["layers"] | null>(null);
export const alerts = signal<RunNews["alerts"] | null>(null);
export const notes = signal<RunNote[]>([]);
export const control = signal<Control | null>(null);
/** Why nothing can be shown; the server's sentence. */
export const trouble = signal<string | null>(null);
/** The stream is broken; the browser tries again. */
export const lost = signal(false);

let path: string | null = null;
let epoch = 0;
let stop = () => {};

/** Tracks by name, in the order they were first told. */
export function merge(known: readonly Track[], fresh: readonly Track[]): Track[] {
  const byName = new Map(known.map((track) => [track.name, track]));
  for (const track of fresh) byName.set(track.name, track);
  return [...byName.values()];
}

function clear(): void {
  facts.value = progress.value = steps.value = layers.value = alerts.value = control.value = trouble.value = null;
  scalars.value = [];
  gradients.value = [];
  notes.value = [];
  lost.value = false;
  epoch = 0;
}

/** Another epoch is another run in the same folder: what was known of the first is void. */
function take(news: RunNews): void {
  if (path === null) return;
  batch(() => {
    if (news.epoch !== epoch) clear();
    epoch = news.epoch;
    progress.value = news.progress;
    if (news.facts) facts.value = news.facts;
    if (news.scalars.length) scalars.value = merge(scalars.value, news.scalars);
    if (news.gradients.length) gradients.value = merge(gradients.value, news.gradients);
    if (news.steps) steps.value = news.steps;
    if (news.layers) layers.value = news.layers;
    if (news.alerts) alerts.value = news.alerts;
    if (news.notes) notes.value = news.notes;
    if (news.control) control.value = news.control;
  });
}

export function openRun(wanted: string): () => void {
  path = wanted;
  batch(clear);
  stop = api.followRun(
    wanted,
    take,
    (connected) => (lost.value = !connected),
    // A refused stream says nothing; asking once more tells why.
    () => void api.run(wanted).then(take, (error: unknown) => (trouble.value = message(error))),
  );
  return () => {
    stop();
    path = null;
  };
}

/** Asks the live process; what it refuses is told. */
export async function ask(request: ControlRequest): Promise<boolean> {
  if (path === null) return false;
  try {
    take(await api.controlRun(path, request));
    return true;
  } catch (error) {
    notify(message(error), true);
    return false;
  }
}
