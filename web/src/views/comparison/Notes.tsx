// What the dump doctor says, and what could not be read.
import { plural } from "../../format";
import type { DiffResult } from "../../model";

export function Notes({ result }: { result: DiffResult }) {
  const offset = result.layer_offset;
  const notes = offset ? [`layer n of A is paired with layer n ${offset > 0 ? "+" : "−"} ${Math.abs(offset)} of B`, ...result.notes] : result.notes;
  return (
    <>
      {notes.length > 0 && (
        <section class="notes" aria-label="About the dumps">
          <ul>{notes.map((note) => <li key={note}>{note}</li>)}</ul>
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
