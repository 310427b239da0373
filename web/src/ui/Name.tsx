// A name that is cut when there is no room, by the browser, at any width: at its beginning first, then between the
// number of its layer and its end.
import { aroundNumber, ends } from "../format";

export function Name({ text, title = text }: { text: string; title?: string }) {
  const [head, tail] = ends(text);
  const [before, numbered, after] = aroundNumber(head);
  return (
    <span class="name" title={title}>
      {before && <span class="name-head">{before}</span>}
      {numbered && <span class="name-number">{numbered}</span>}
      {after && <span class="name-middle">{after}</span>}
      <span class="name-tail">{tail}</span>
    </span>
  );
}
