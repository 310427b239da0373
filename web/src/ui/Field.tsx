// A field whose text is the user's until it is done with: what arrives meanwhile does not overwrite what is typed.
import type { InputHTMLAttributes } from "preact";
import { useState } from "preact/hooks";

interface Props extends Omit<InputHTMLAttributes<HTMLInputElement>, "value" | "onChange" | "onInput" | "onBlur"> {
  value: string | number;
  /** On Enter, on leaving the field, and at each step of a number's arrows. */
  onDone: (text: string) => void;
}

export function Field({ value, onDone, ...rest }: Props) {
  const [typed, setTyped] = useState<string | null>(null);
  return (
    <input {...rest} value={typed ?? value} onInput={(event) => setTyped(event.currentTarget.value)} onBlur={() => setTyped(null)}
      onChange={(event) => {
        onDone(event.currentTarget.value);
        setTyped(null);
      }} />
  );
}
