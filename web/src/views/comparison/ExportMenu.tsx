// Reports as files, and pairs in and out.
import { useRef } from "preact/hooks";
import { reportAddress, type Report } from "../../api";
import { plural } from "../../format";
import type { Comparison } from "../../model";
import { message } from "../../state";
import { Menu } from "../../ui/Menu";
import { notify } from "../../ui/Notices";
import { ExportIcon } from "../../ui/icons";
import { applyPairs, readPairsFile } from "./pairing";

const REPORTS: { report: Report; label: string; hint: string; diffOnly: boolean }[] = [
  { report: "report.html", label: "HTML", hint: "one page to send to a colleague", diffOnly: true },
  { report: "report.json", label: "JSON", hint: "all of it, for programs", diffOnly: false },
  { report: "report.csv", label: "CSV", hint: "a row for each pair", diffOnly: true },
  { report: "report.xml", label: "JUnit", hint: "for CI", diffOnly: true },
  { report: "pairs.json", label: "Pairs", hint: "who was paired with whom", diffOnly: true },
];

async function importPairs(file: File): Promise<void> {
  try {
    const pairs = readPairsFile(await file.text());
    if (await applyPairs(pairs)) notify(`${plural(pairs.length, "pair")} from ${file.name}`);
  } catch (error) {
    notify(`${file.name}: ${message(error)}`, true);
  }
}

export function ExportMenu({ comparison }: { comparison: Comparison }) {
  const picker = useRef<HTMLInputElement>(null);
  const isDiff = comparison.kind === "diff";
  const picked = () => {
    const file = picker.current?.files?.[0];
    if (file) void importPairs(file);
    picker.current!.value = "";
  };
  return (
    <>
      <Menu label={<><ExportIcon /> Export</>} title="Export and import">
        {(close) => (
          <>
            {REPORTS.filter((entry) => isDiff || !entry.diffOnly).map(({ report, label, hint }) => (
              <a key={report} role="menuitem" tabIndex={-1} href={reportAddress(comparison.id, report)} download onClick={close}>
                <b>{label}</b><span class="dim">{hint}</span>
              </a>
            ))}
            {isDiff && (
              <button type="button" role="menuitem" tabIndex={-1} class="apart" onClick={() => { close(); picker.current!.click(); }}>
                <b>Import pairs…</b><span class="dim">and compare again</span>
              </button>
            )}
          </>
        )}
      </Menu>
      <input ref={picker} type="file" accept=".json,application/json" hidden aria-label="Pairs file" onChange={picked} />
    </>
  );
}
