// What the dump doctor says, and what could not be read. The list of pairs is below: many notes fold.
import { plural } from "../../format";
import type { DiffResult } from "../../model";

const SHOWN = 2;

export function Notes({ result }: { result: DiffResult }) {
  const offset = result.layer_offset;
  const notes = offset ? [`layer n of A is paired with layer n ${offset > 0 ? "+" : "−"} ${Math.abs(offset)} of B`, ...result.notes] : result.notes;
  const shown = notes.length > SHOWN + 1 ? notes.slice(0, SHOWN) : notes, folded = notes.slice(shown.length);
  return (
    <>
      {notes.length > 0 && (
        <section class="notes" aria-label="About the dumps">
          <ul>{shown.map((note) => <li key={note}>{note}</li>)}</ul>
          {folded.length > 0 && <details><summary>{plural(folded.length, "more note")}</summary><ul>{folded.map((note) => <li key={note}>{note}</li>)}</ul></details>}
        </section>
      )}
      {result.skipped.length > 0 && (
        <details class="skipped">
          <summary>{plural(result.skipped.length, "member")} could not be read</summary>
          <ul>
            {result.skipped.map((skip, at) => (
              <li key={at}><span class="mono">{skip.name || skip.path}</span> <span class="dim">{skip.reason}</span></li>
            ))}
          </ul>
        </details>
      )}
    </>
  );
}
