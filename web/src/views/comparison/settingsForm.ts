// The settings of a comparison as a form has them (text in fields), there and back.
import type { Settings } from "../../model";

export type Rule = "noise" | "strict" | "tolerance" | "reference";

export interface Form {
  /** A strategy, or "regex", or "chain" for what the user writes himself. */
  strategy: string;
  from: string;
  to: string;
  chain: string;
  threshold: string;
  coverage: string;
  /** Lines of a file of names. */
  names: string;
  rule: Rule;
  rtol: string;
  atol: string;
  reference: string;
  layout: string;
  /** What no field shows: it stays, unless all is set back. */
  unseen: Pick<Settings, "pairs" | "top">;
}

export type Field = Exclude<keyof Form, "unseen">;
export type Errors = Partial<Record<Field | "form", string>>;

export const STRATEGIES: Record<string, string> = {
  auto: "auto: stage, weights, value, exact, fuzzy, fused, shape",
  stage: "layer and stage",
  exact: "exact name",
  fuzzy: "similar names",
  shape: "shape and values",
  regex: "regular expression",
  chain: "a chain of these…",
};

/** As matchOf writes it. A rule without ",auto" leaves the rest unpaired: it is shown as the chain it is. */
const REGEX = /^regex:(.*?)=>([^,]*),auto$/;

export function formOf(settings: Settings): Form {
  const match = settings.match ?? "auto";
  const regex = REGEX.exec(match);
  const own = settings.rtol !== undefined || settings.atol !== undefined;
  return {
    strategy: regex ? "regex" : match in STRATEGIES ? match : "chain",
    from: regex?.[1] ?? "",
    to: regex?.[2] ?? "",
    chain: match,
    threshold: settings.threshold === undefined ? "" : String(settings.threshold),
    coverage: settings.coverage === undefined ? "" : String(settings.coverage),
    names: typeof settings.names === "object" ? Object.entries(settings.names).map((rule) => rule.join(" = ")).join("\n") : settings.names ?? "",
    rule: settings.reference !== undefined ? "reference" : own ? "tolerance" : settings.policy ?? "noise",
    rtol: settings.rtol === undefined ? "" : String(settings.rtol),
    atol: settings.atol === undefined ? "" : String(settings.atol),
    reference: settings.reference ?? "",
    layout: settings.layout ?? "",
    unseen: { ...(settings.pairs && { pairs: settings.pairs }), ...(settings.top !== undefined && { top: settings.top }) },
  };
}

function numberIn(form: Form, field: "threshold" | "coverage" | "rtol" | "atol", most: number, errors: Errors): number | undefined {
  const text = form[field].trim();
  if (text === "") return undefined;
  const value = Number(text);
  if (Number.isFinite(value) && value >= 0 && value <= most) return value;
  errors[field] = most === 1 ? "a number from 0 to 1" : "a number, 0 or more";
  return undefined;
}

function matchOf(form: Form, errors: Errors): string | undefined {
  if (form.strategy === "chain") {
    if (form.chain.trim() === "") errors.chain = "strategies with commas between them";
    return form.chain.trim();
  }
  if (form.strategy !== "regex") return form.strategy === "auto" ? undefined : form.strategy;
  if (form.from === "") errors.from = "a regular expression for names of A";
  // What the rule does not pair is still paired the usual way.
  return `regex:${form.from}=>${form.to},auto`;
}

function toleranceOf(form: Form, errors: Errors): Settings {
  switch (form.rule) {
    case "noise":
      return {};
    case "strict":
      return { policy: "strict" };
    case "reference":
      if (form.reference.trim() === "") errors.reference = "the path of a more precise run";
      return { reference: form.reference.trim() };
    case "tolerance": {
      const rtol = numberIn(form, "rtol", Infinity, errors), atol = numberIn(form, "atol", Infinity, errors);
      if (rtol === undefined && atol === undefined && !errors.rtol && !errors.atol) errors.rtol = "rtol, atol or both";
      return { ...(rtol === undefined ? {} : { rtol }), ...(atol === undefined ? {} : { atol }) };
    }
  }
}

/** Settings, and what is wrong with the fields. */
export function settingsOf(form: Form): { settings: Settings; errors: Errors } {
  const errors: Errors = {};
  const settings: Settings = toleranceOf(form, errors);
  const match = matchOf(form, errors), threshold = numberIn(form, "threshold", 1, errors);
  if (match !== undefined) settings.match = match;
  if (threshold !== undefined) settings.threshold = threshold;
  const coverage = numberIn(form, "coverage", 1, errors);
  if (coverage !== undefined) settings.coverage = coverage;
  if (form.names.trim()) settings.names = form.names;
  if (form.layout.trim()) settings.layout = form.layout.trim();
  return { settings: { ...settings, ...form.unseen }, errors };
}

/** The field that a sentence of the server is about. */
export function placeError(sentence: string, form: Form): Errors {
  const fields: [RegExp, Field][] = [
    [/"names"/, "names"], [/coverage/i, "coverage"], [/threshold/i, "threshold"], [/rtol/i, "rtol"], [/atol/i, "atol"], [/layout/i, "layout"], [/reference/i, "reference"],
    [/match|regex|regular expression|strateg/i, form.strategy === "regex" ? "from" : "chain"],
  ];
  const found = fields.find(([pattern]) => pattern.test(sentence));
  const isShown = found && (found[1] !== "chain" || form.strategy === "chain");
  return { [isShown ? found[1] : "form"]: sentence };
}
