/** The charts of the wallet page, in one piece that is loaded beside the data. */

export { draw } from "./base.js";
export { dataTable } from "./data-table.js";
export { donut } from "./ownership.js";
export { colourOf, timeline } from "./timeline.js";
export { valueHistory } from "./value-history.js";
