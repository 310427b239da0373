// What is on screen, as a file: .npy or .csv, of either side or of their difference.
import * as api from "../../api";
import type { Which } from "../../model";
import type { Look } from "./look";

const names: Record<Which, string> = { a: "A", b: "B", difference: "B − A" };

export function ExportSlice({ id, index, look, sides }: { id: string; index: number; look: Look; sides: readonly Which[] }) {
  const { text, isFlat } = look.slice.value;
  const part: api.Part = isFlat ? { flat: text } : { slice: text };
  return (
    <details class="export-menu">
      <summary class="button">Export slice</summary>
      <div class="export-body panel">
        <p class="dim mono">[{text}]</p>
        {sides.map((side) => (
          <p key={side} class="export-row">
            <span>{names[side]}</span>
            {(["npy", "csv"] as const).map((format) => (
              <a key={format} class="button" download href={api.sliceAddress(id, index, side, part, format)} aria-label={`${names[side]} as .${format}`}>.{format}</a>
            ))}
          </p>
        ))}
      </div>
    </details>
  );
}
