// Begins: theme, keyboard, address, then the page.
import { render } from "preact";
import { startKeys } from "./keys";
import { startRouter } from "./router";
import { startTheme } from "./theme";
import { App } from "./views/App";
import "./styles/main.css";

startTheme();
startKeys();
startRouter();
render(<App />, document.getElementById("app")!);
