// The inspector, and with it the heatmap: the larger half of the page, of which a list of pairs needs nothing.
import { later } from "../../ui/later";

export const Inspector = later(() => import("./Inspector").then((module) => module.Inspector));
