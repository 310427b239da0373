// What stays on top: what is compared, the counts (they are the filters too), and what can be done with it all.
import { count, sideName, sideNames } from "../../format";
import type { Comparison, Summary, Verdict } from "../../model";
import { FILTERS, type Filter } from "../../pairs/arrange";
import { choices, toggleFilter } from "../../pairs/list";
import { toggleTheme } from "../../theme";
import { openHelp } from "../../ui/Help";
import { SettingsIcon, SunMoonIcon } from "../../ui/icons";
import { Mark } from "../../ui/Mark";
import { Name } from "../../ui/Name";
import { Coverage } from "./coverage";
import { ExportMenu } from "./ExportMenu";
import { settingsOpen } from "./SettingsPanel";

const MARK_OF: Record<Filter, Verdict> = {
  diverged: "diverged", errors: "error", within: "within", identical: "identical", unmatched: "only_a",
};

const countOf = (summary: Summary, filter: Filter) =>
  filter === "unmatched" ? summary.only_a + summary.only_b : summary[filter];

function Chips({ summary }: { summary: Summary }) {
  const chosen = choices.value.filters;
  return (
    <div class="chips" role="group" aria-label="Show only">
      {FILTERS.map((filter) => {
        const n = countOf(summary, filter);
        return (
          <button key={filter} type="button" class={`chip ${filter}`} aria-pressed={chosen.has(filter)} disabled={n === 0 && !chosen.has(filter)}
            title={chosen.has(filter) ? `Show the others too` : `Show only ${filter}`} onClick={() => toggleFilter(filter)}>
            <Mark verdict={MARK_OF[filter]} /><b>{count(n)}</b> {filter === "errors" && n === 1 ? "error" : filter}
          </button>
        );
      })}
    </div>
  );
}

function Sides({ comparison }: { comparison: Comparison }) {
  const { a, b } = comparison;
  const [nameA, nameB] = b ? sideNames(a, b) : [sideName(a), ""];
  return (
    <h1 class="sides">
      {b && <span class="side-letter">A</span>}<Name text={nameA} title={a.path} />
      {b && <><span class="side-letter">B</span><Name text={nameB} title={b.path} /></>}
    </h1>
  );
}

export function TopBar({ children }: { children?: preact.ComponentChildren }) {
  return (
    <header class="topbar">
      <a class="brand" href="/" title="All comparisons">tdbg</a>
      {children}
      <div class="tools">
        <button type="button" class="plain" onClick={toggleTheme} title="Light or dark" aria-label="Light or dark"><SunMoonIcon /></button>
        <button type="button" class="plain" onClick={openHelp} title="Keyboard (?)" aria-label="Keyboard help">?</button>
      </div>
    </header>
  );
}

export function ComparisonHeader({ comparison }: { comparison: Comparison }) {
  const isDiff = comparison.kind === "diff";
  return (
    <TopBar>
      <div class="subject">
        <Sides comparison={comparison} />
        {isDiff && comparison.status === "done" && comparison.summary && <><Chips summary={comparison.summary} /><Coverage summary={comparison.summary} /></>}
      </div>
      <div class="actions">
        {isDiff && <button type="button" onClick={() => (settingsOpen.value = true)} title="Matching and tolerance (s)"><SettingsIcon /> Settings</button>}
        {comparison.status === "done" && <ExportMenu comparison={comparison} />}
      </div>
    </TopBar>
  );
}
