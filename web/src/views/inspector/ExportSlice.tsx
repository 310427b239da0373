// What is on screen, as a file: .npy or .csv, of either side or of their difference.
import * as api from "../../api";
import type { Which } from "../../model";
import { Menu } from "../../ui/Menu";
import type { Look } from "./look";

const names: Record<Which, string> = { a: "A", b: "B", difference: "B − A" };

export function ExportSlice({ id, index, look, sides }: { id: string; index: number; look: Look; sides: readonly Which[] }) {
  const { text, isFlat } = look.slice.value;
  const part: api.Part = isFlat ? { flat: text } : { slice: text };
  return (
    <Menu label="Export slice" title={`Export [${text}]`}>
      {(close) => sides.flatMap((side) => (["npy", "csv"] as const).map((format) => (
        <a key={side + format} role="menuitem" tabIndex={-1} download="" href={api.sliceAddress(id, index, side, part, format)} onClick={close}>
          {names[side]} as .{format}
        </a>
      )))}
    </Menu>
  );
}
