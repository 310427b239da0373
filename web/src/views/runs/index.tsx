// Recorded runs: a part of the page that a comparison needs nothing of.
import { later } from "../../ui/later";

export const RunsView = later(() => import("./RunsView").then((module) => module.RunsView));
export const RunView = later(() => import("./RunView").then((module) => module.RunView));
