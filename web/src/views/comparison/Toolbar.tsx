// How the list is arranged: search, group, sort, fold.
import { count, plural } from "../../format";
import { GROUPS, SORTS, type Group, type Sort } from "../../pairs/arrange";
import { arranged, choices, dropOwnOrder, foldAll, setGroup, setSort, setText, textError } from "../../pairs/list";
import { comparison, diff } from "../../state";
import { startPairing } from "./pairing";

const SEARCH_ID = "search-pairs";

/** What was typed before is selected: the next letter begins anew. */
export function focusSearch(): void {
  const field = document.getElementById(SEARCH_ID) as HTMLInputElement | null;
  field?.focus();
  field?.select();
}

function Search() {
  const error = textError.value;
  return (
    <span class="search">
      <input id={SEARCH_ID} type="search" placeholder="Words or /regex/" aria-label="Filter by name: words, or a /regular expression/"
        value={choices.value.text} aria-invalid={error !== null} aria-describedby="search-error" spellcheck={false} autocomplete="off"
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key !== "Escape" && event.key !== "Enter") return;
          event.preventDefault();
          if (event.key === "Escape") setText("");
          event.currentTarget.blur();
          document.querySelector<HTMLElement>(".pair-list")?.focus();
        }} />
      <span id="search-error" class="field-error" role="alert">{error}</span>
    </span>
  );
}

function Choice<T extends string>({ label, value, options, onChange }: { label: string; value: T; options: [T, string][]; onChange: (value: T) => void }) {
  return (
    <label class="choice">
      <span>{label}</span>
      <select value={value} onChange={(event) => onChange(event.currentTarget.value as T)}>
        {options.map(([key, text]) => <option key={key} value={key}>{text}</option>)}
      </select>
    </label>
  );
}

export function Toolbar() {
  const { group, sort, own } = choices.value;
  const { pairs, groups } = arranged.value;
  const all = diff.value?.pairs.length ?? 0, unmatched = diff.value?.summary;
  const made = comparison.value?.settings.pairs?.length ?? 0; // these are taken back where they are made
  const sorts = (Object.entries(SORTS) as [Sort, string][]).filter(([key]) => key !== "own" || own.length > 0);
  return (
    <div class="toolbar" role="group" aria-label="Arrange the list">
      <Search />
      <Choice label="Group" value={group} options={Object.entries(GROUPS) as [Group, string][]} onChange={setGroup} />
      <Choice label="Sort" value={sort} options={sorts} onChange={setSort} />
      {groups > 1 && <button type="button" onClick={() => foldAll(true)}>Expand all</button>}
      {groups > 1 && <button type="button" onClick={() => foldAll(false)}>Collapse all</button>}
      {own.length > 0 && <button type="button" class="plain" onClick={() => void dropOwnOrder()}>Forget my order</button>}
      {(made > 0 || (unmatched && unmatched.only_a > 0 && unmatched.only_b > 0)) && <button type="button" onClick={() => startPairing(null)}>Pair by hand…</button>}
      <span class="shown dim" role="status">{pairs.length === all ? plural(all, "pair") : `${count(pairs.length)} of ${plural(all, "pair")}`}</span>
    </div>
  );
}
