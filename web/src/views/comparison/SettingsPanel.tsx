// How to match and how to judge; a change is tried at once.
import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useId, useState } from "preact/hooks";
import { plural } from "../../format";
import type { Comparison } from "../../model";
import { compareAgain, message } from "../../state";
import { Dialog } from "../../ui/Dialog";
import { formOf, placeError, settingsOf, STRATEGIES, type Errors, type Field, type Form, type Rule } from "./settingsForm";

export const settingsOpen = signal(false);
const close = () => (settingsOpen.value = false);

const RULES: [Rule, string, string][] = [
  ["noise", "Noise floor", "what rounding at this depth and in these types explains"],
  ["strict", "Strict", "rtol and atol by type, as for weights"],
  ["tolerance", "Own tolerance", "one rtol and atol for every element"],
  ["reference", "Reference run", "B may be three times as far from a more precise run as A"],
];

interface FieldProps {
  label: string;
  field: Field;
  form: Form;
  errors: Errors;
  set: (field: Field, value: string) => void;
  placeholder?: string;
  mono?: boolean;
}

function TextField({ label, field, form, errors, set, placeholder, mono }: FieldProps) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <input id={id} class={mono ? "mono" : ""} value={form[field]} placeholder={placeholder ?? ""} spellcheck={false} autocomplete="off"
        aria-invalid={errors[field] !== undefined} aria-describedby={`${id}-error`} onInput={(event) => set(field, event.currentTarget.value)} />
      <span class="field-error" id={`${id}-error`} role="alert">{errors[field]}</span>
    </div>
  );
}

/** What somebody's own engine calls its tensors, a line each. */
function NamesField({ form, errors, set }: Omit<FieldProps, "label" | "field">) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>Engine's names</label>
      <textarea id={id} class="mono" rows={form.names ? 4 : 2} value={form.names} placeholder={"blk{L}_q = layers.{L}.q_proj"} spellcheck={false}
        aria-invalid={errors.names !== undefined} aria-describedby={`${id}-error`} onInput={(event) => set("names", event.currentTarget.value)} />
      <span class="field-error" id={`${id}-error`} role="alert">{errors.names}</span>
    </div>
  );
}

function Matching(props: Omit<FieldProps, "label" | "field">) {
  const { form, set } = props;
  const id = useId();
  return (
    <fieldset>
      <legend>Matching</legend>
      <div class="field">
        <label for={id}>Strategy</label>
        <select id={id} value={form.strategy} onChange={(event) => set("strategy", event.currentTarget.value)}>
          {Object.entries(STRATEGIES).map(([key, text]) => <option key={key} value={key}>{text}</option>)}
        </select>
      </div>
      {form.strategy === "regex" && (
        <div class="two-fields">
          <TextField {...props} label="A's name" field="from" placeholder="blk\.(\d+)\.attn_q" mono />
          <TextField {...props} label="is B's" field="to" placeholder="layers.\1.q_proj" mono />
        </div>
      )}
      {form.strategy === "chain" && <TextField {...props} label="Chain" field="chain" placeholder="exact,regex:a(\d+)=>b\1,shape" mono />}
      {["auto", "fuzzy", "chain"].includes(form.strategy) && <TextField {...props} label="Similarity needed" field="threshold" placeholder="0.6" />}
      <NamesField {...props} />
      <TextField {...props} label="Coverage needed" field="coverage" placeholder="0.5" />
      <TextField {...props} label="Layout of B" field="layout" placeholder="b h t d -> t h d" mono />
    </fieldset>
  );
}

function Tolerance(props: Omit<FieldProps, "label" | "field">) {
  const { form, set } = props;
  const extra: Partial<Record<Rule, ComponentChildren>> = {
    tolerance: <div class="two-fields"><TextField {...props} label="rtol" field="rtol" placeholder="0" /><TextField {...props} label="atol" field="atol" placeholder="0" /></div>,
    reference: <TextField {...props} label="Path" field="reference" placeholder="/runs/float64" mono />,
  };
  return (
    <fieldset>
      <legend>Tolerance</legend>
      {RULES.map(([rule, label, hint]) => (
        <div key={rule} class="rule">
          <label>
            <input type="radio" name="rule" checked={form.rule === rule} onChange={() => set("rule", rule)} />
            <span><b>{label}</b> <span class="dim">{hint}</span></span>
          </label>
          {form.rule === rule && extra[rule]}
        </div>
      ))}
    </fieldset>
  );
}

export function SettingsPanel({ comparison }: { comparison: Comparison }) {
  const [form, setForm] = useState(() => formOf(comparison.settings));
  const [errors, setErrors] = useState<Errors>({});
  const [busy, setBusy] = useState(false);
  const set = (field: Field, value: string) => setForm((old) => ({ ...old, [field]: value }));
  const submit = async (event: Event) => {
    event.preventDefault();
    const { settings, errors: wrong } = settingsOf(form);
    setErrors(wrong);
    if (Object.keys(wrong).length > 0) return;
    setBusy(true);
    try {
      await compareAgain(settings);
      close();
    } catch (error) {
      setErrors(placeError(message(error), form));
      setBusy(false);
    }
  };
  const shared = { form, errors, set };
  return (
    <Dialog title="Settings" onClose={close}>
      <form class="settings" onSubmit={(event) => void submit(event)}>
        <Matching {...shared} />
        <Tolerance {...shared} />
        {form.unseen.pairs && <p class="dim">{plural(form.unseen.pairs.length, "pair")} made by hand: kept, unless Defaults sets all back.</p>}
        <p class="field-error" role="alert">{errors.form}</p>
        <div class="buttons">
          <button type="submit" class="primary" disabled={busy}>Compare again</button>
          <button type="button" onClick={() => setForm(formOf({}))}>Defaults</button>
        </div>
      </form>
    </Dialog>
  );
}
