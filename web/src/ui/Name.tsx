// A name that is cut in the middle when there is no room, by the browser, at any width.
import { ends } from "../format";

export function Name({ text, title = text }: { text: string; title?: string }) {
  const [head, tail] = ends(text);
  return (
    <span class="name" title={title}>
      {head && <span class="name-head">{head}</span>}
      <span class="name-tail">{tail}</span>
    </span>
  );
}
