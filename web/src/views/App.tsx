// The frame: which view the address asks for, and what is on every view (help, notices).
import { place, query } from "../router";
import { Help } from "../ui/Help";
import { Notices } from "../ui/Notices";
import { ComparisonView } from "./comparison/ComparisonView";
import { RunsView, RunView } from "./runs";
import { StartView } from "./start/StartView";

function Nowhere() {
  return (
    <main class="message-page">
      <h1>No such page</h1>
      <p>
        <a href="/">To the start</a>
      </p>
    </main>
  );
}

function View() {
  const at = place.value;
  if (at.view === "start") return <StartView />;
  if (at.view === "comparison") return <ComparisonView key={at.id} id={at.id} pair={at.pair} />;
  const path = query.value.get("path") ?? "";
  if (at.view === "runs") return <RunsView key={path} path={path} />;
  if (at.view === "run") return <RunView key={path} path={path} />;
  return <Nowhere />;
}

export function App() {
  return (
    <>
      <View />
      <Help />
      <Notices />
    </>
  );
}
