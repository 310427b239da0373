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

export function Field({ type = "text", value, onDone, ...rest }: Props) {
  const [typed, setTyped] = useState<string | null>(null);
  return (
    <input {...rest} type={type} value={typed ?? value} onInput={(event) => setTyped(event.currentTarget.value)} onBlur={() => setTyped(null)}
      onChange={(event) => {
        onDone(event.currentTarget.value);
        setTyped(null);
      }} />
  );
}
