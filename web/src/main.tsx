// Begins: theme, keyboard, address, then the page. What it will show is asked for before it is drawn.
import { render } from "preact";
import { startKeys } from "./keys";
import { place, startRouter } from "./router";
import { open } from "./state";
import { startTheme } from "./theme";
import { refuseStrayDrops } from "./ui/strayDrops";
import { App } from "./views/App";
import "./styles/main.css";

startTheme();
startKeys();
startRouter();
refuseStrayDrops();
if (place.value.view === "comparison") void open(place.value.id);
render(<App />, document.getElementById("app")!);
