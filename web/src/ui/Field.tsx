// A field whose text is the user's until it is done with: what arrives meanwhile does not overwrite what is typed.
import { useState } from "preact/hooks";

interface Props {
  type?: "text" | "number";
  class?: string;
  min?: number;
  max?: number;
  step?: number | "any";
  "aria-label"?: string;
  value: string | number;
  /** On Enter, on leaving the field, and at each step of a number's arrows. */
  onDone: (text: string) => void;
}

export function Field({ type, value, onDone, ...rest }: Props) {
  const [typed, setTyped] = useState<string | null>(null);
  const own = {
    ...rest,
    value: typed ?? value,
    onInput: (event: { currentTarget: HTMLInputElement }) => setTyped(event.currentTarget.value),
    onBlur: () => setTyped(null),
    onChange: (event: { currentTarget: HTMLInputElement }) => {
      onDone(event.currentTarget.value);
      setTyped(null);
    },
  };
  return type === "number" ? <input {...own} type="number" /> : <input {...own} type="text" />;
}
