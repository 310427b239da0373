// Find a value, a range, NaN or infinities on either side, and go from place to place.
import { useEffect, useRef, useState } from "preact/hooks";
import * as api from "../../api";
import { count, percent } from "../../format";
import type { Found } from "../../model";
import { message } from "../../state";
import type { Look } from "./look";
import { parseSearch } from "./search_text";

interface Props {
  id: string;
  index: number;
  look: Look;
  sides: readonly ("a" | "b")[];
}

const pageSize = 100;

interface Finding {
  question: string;
  places: Found["places"];
  next: number | null;
  at: number;
}

export function Find({ id, index, look, sides }: Props) {
  const [text, setText] = useState("");
  const [side, setSide] = useState<"a" | "b">(sides[0] ?? "a");
  const [finding, setFinding] = useState<Finding | null>(null);
  const [trouble, setTrouble] = useState<string | null>(null);
  // How far a search has come that has found nothing so far: one request looks through a part of a huge tensor.
  const [looked, setLooked] = useState<number | null>(null);
  const request = useRef<AbortController | null>(null);
  const wanted = parseSearch(text);
  const isUnreadable = text.trim() !== "" && !wanted;
  const question = `${side} ${text.trim()}`;
  const isCurrent = finding?.question === question;
  const stop = () => {
    request.current?.abort();
    setLooked(null);
  };
  useEffect(() => stop, []);

  const show = (now: Finding) => {
    setFinding(now);
    const place = now.places[now.at];
    if (place) look.goTo(place.index);
  };
  const fetchMore = async (known: Finding) => {
    if (!wanted) return;
    request.current?.abort();
    const { signal } = (request.current = new AbortController());
    const ask = (from: number) => api.find(id, index, { side, ...wanted, from, limit: pageSize }, signal);
    try {
      let found = await ask(known.next ?? 0);
      while (found.places.length === 0 && found.next !== null) {
        setLooked(found.next);
        found = await ask(found.next);
      }
      setTrouble(null);
      setLooked(null);
      show({ question, places: [...known.places, ...found.places], next: found.next, at: Math.min(known.at + 1, known.places.length + found.places.length - 1) });
    } catch (error) {
      if (signal.aborted) return;
      setLooked(null);
      setTrouble(message(error));
    }
  };
  const next = () => {
    if (!wanted || looked !== null) return;
    if (!isCurrent || !finding) void fetchMore({ question, places: [], next: 0, at: -1 });
    else if (finding.at + 1 < finding.places.length) show({ ...finding, at: finding.at + 1 });
    else if (finding.next !== null) void fetchMore(finding);
  };
  const previous = () => {
    if (isCurrent && finding && finding.at > 0) show({ ...finding, at: finding.at - 1 });
  };
  const tell = () => {
    if (trouble) return trouble;
    if (isUnreadable) return "a number, 0.5..1, > 3, nan, ±inf or zero";
    if (looked !== null) return `looking, ${percent(looked / look.size)}`;
    if (!isCurrent || !finding) return "";
    if (finding.places.length === 0) return "nothing found";
    return `${count(finding.at + 1)} of ${count(finding.places.length)}${finding.next === null ? "" : "+"}`;
  };
  return (
    <form class="finder" role="search" aria-label="Find a value" onSubmit={(event) => { event.preventDefault(); next(); }}>
      <input type="search" class="mono" placeholder="Find 0.5..1, nan, inf" aria-label="Value, range, nan, inf or zero" value={text}
        aria-invalid={isUnreadable} onInput={(event) => { stop(); setText(event.currentTarget.value); }} />
      {sides.length > 1 && (
        <select aria-label="Side" value={side} onChange={(event) => { stop(); setSide(event.currentTarget.value as "a" | "b"); }}>
          {sides.map((name) => <option key={name} value={name}>in {name.toUpperCase()}</option>)}
        </select>
      )}
      <button type="button" onClick={previous} disabled={!isCurrent || !finding || finding.at <= 0} aria-label="Previous place">‹</button>
      <button type="submit" disabled={!wanted} aria-label="Next place">›</button>
      <span class="dim" role="status">{tell()}</span>
    </form>
  );
}
