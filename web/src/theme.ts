// Light or dark: the system's, until somebody says otherwise. Kept in this browser.
import { computed, effect, signal } from "@preact/signals";

export type Choice = "system" | "light" | "dark";

const KEY = "tdbg-theme";
const darkSystem = window.matchMedia("(prefers-color-scheme: dark)");
const systemIsDark = signal(darkSystem.matches);

function remembered(): Choice {
  const kept = window.localStorage.getItem(KEY);
  return kept === "light" || kept === "dark" ? kept : "system";
}

export const choice = signal<Choice>(remembered());

/** What is shown. Canvases read it, so that they are drawn again when it changes. */
export const theme = computed<"light" | "dark">(() =>
  choice.value === "system" ? (systemIsDark.value ? "dark" : "light") : choice.value);

export function startTheme(): void {
  darkSystem.addEventListener("change", (event) => (systemIsDark.value = event.matches));
  effect(() => {
    document.documentElement.dataset["theme"] = theme.value;
  });
}

export function toggleTheme(): void {
  const wanted = theme.value === "dark" ? "light" : "dark";
  const isSystems = wanted === (systemIsDark.value ? "dark" : "light");
  choice.value = isSystems ? "system" : wanted;
  if (isSystems) window.localStorage.removeItem(KEY);
  else window.localStorage.setItem(KEY, wanted);
}

/** A colour of the palette as canvas and WebGL want it. */
export function colour(token: string): string {
  void theme.value;
  return getComputedStyle(document.documentElement).getPropertyValue(token).trim();
}
