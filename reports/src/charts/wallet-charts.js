/** Bundle of the wallet page's charts, loaded in parallel with the data. */

export { draw } from "./base.js";
export { dataTable } from "./data-table.js";
export { donut } from "./ownership.js";
export { colourOf, timeline } from "./timeline.js";
export { valueHistory } from "./value-history.js";
