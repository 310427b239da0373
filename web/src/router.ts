// Where the page is. The address holds all of it: the view, and what the view shows; so every state can be
// sent to a colleague, and back and forward do what they should.
//
//     /                      start
//     /c/ID?group=&sort=…    a comparison
//     /c/ID/pairs/N?…        the same with pair N open
//     /runs?path=            recorded runs, all or those in a folder
//     /run?path=             the dashboard of one
//
// Keys of the list survive from pair to pair; the rest belong to the one pair that is open.
import { computed, signal } from "@preact/signals";

export type Place =
  | { view: "start" }
  | { view: "comparison"; id: string; pair: number | null }
  | { view: "runs" }
  | { view: "run" }
  | { view: "nowhere" };

const LIST_KEYS = ["group", "sort", "filter", "q"];

const here = signal(currentAddress());
export const place = computed<Place>(() => parse(here.value.pathname));
export const query = computed(() => here.value.searchParams);

function currentAddress(): URL {
  return new URL(window.location.href);
}

export function parse(path: string): Place {
  if (path === "/") return { view: "start" };
  if (path === "/runs" || path === "/run") return { view: path === "/run" ? "run" : "runs" };
  const match = /^\/c\/([^/]+)(?:\/pairs\/(\d+))?\/?$/.exec(path);
  if (!match) return { view: "nowhere" };
  return { view: "comparison", id: decodeURIComponent(match[1]!), pair: match[2] === undefined ? null : Number(match[2]) };
}

/** To another address of the page. `replace` leaves no entry behind, for what changes with every keystroke. */
export function go(address: string, replace = false): void {
  if (replace) window.history.replaceState(null, "", address);
  else window.history.pushState(null, "", address);
  here.value = currentAddress();
}

/** Sets (or with null removes) keys of the query and keeps the rest. */
export function setQuery(changes: Record<string, string | null>, replace = true): void {
  const url = currentAddress();
  for (const [key, value] of Object.entries(changes)) {
    if (value === null || value === "") url.searchParams.delete(key);
    else url.searchParams.set(key, value);
  }
  go(url.pathname + url.search, replace);
}

/** What was chosen for the list of one comparison means nothing for another. */
function listQuery(id: string): string {
  if (place.value.view !== "comparison" || place.value.id !== id) return "";
  const kept = new URLSearchParams();
  for (const key of LIST_KEYS) {
    const value = query.value.get(key);
    if (value !== null) kept.set(key, value);
  }
  const text = kept.toString();
  return text ? "?" + text : "";
}

export const comparisonAddress = (id: string) => `/c/${encodeURIComponent(id)}${listQuery(id)}`;
export const pairAddress = (id: string, index: number) => `/c/${encodeURIComponent(id)}/pairs/${index}${listQuery(id)}`;

export const runAddress = (path: string) => `/run?${new URLSearchParams({ path }).toString()}`;

/** Follows back, forward, and plain clicks on links of the page. */
export function startRouter(): void {
  // The token has become a cookie; in the address it would be sent on with every copied link.
  if (here.value.searchParams.has("token")) setQuery({ token: null });
  window.addEventListener("popstate", () => (here.value = currentAddress()));
  document.addEventListener("click", (event) => {
    if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    const link = event.target instanceof Element ? event.target.closest("a") : null;
    if (!link || link.target || link.hasAttribute("download") || link.origin !== window.location.origin) return;
    if (parse(link.pathname).view === "nowhere" || link.hash) return;
    event.preventDefault();
    go(link.pathname + link.search);
  });
}
