// The keys that work here, on "?".
import { signal } from "@preact/signals";
import { keyTables, useKeys } from "../keys";
import { Dialog } from "./Dialog";

const shown = signal(false);

export const openHelp = () => (shown.value = true);
const closeHelp = () => (shown.value = false);

const KEY_NAMES: Record<string, string> = { ArrowUp: "↑", ArrowDown: "↓", ArrowLeft: "←", ArrowRight: "→", Escape: "Esc" };
const keyName = (key: string) => key.replace(/(Arrow\w+|Escape)$/, (name) => KEY_NAMES[name] ?? name);

function Keys({ keys }: { keys: string[] }) {
  return <>{keys.map((key) => <kbd key={key}>{keyName(key)}</kbd>)}</>;
}

export function Help() {
  useKeys("Everywhere", [{ keys: ["?"], does: "this help", run: openHelp }]);
  if (!shown.value) return null;
  return (
    <Dialog title="Keyboard" onClose={closeHelp}>
      {keyTables().map(({ title, table }) => (
        <section key={title}>
          <h3>{title}</h3>
          <dl class="keys">
            {table.map((binding) => (
              <div key={binding.does}>
                <dt><Keys keys={binding.keys} /></dt>
                <dd>{binding.does}</dd>
              </div>
            ))}
          </dl>
        </section>
      ))}
    </Dialog>
  );
}
