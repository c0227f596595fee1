/** Bundle of the cap table page's charts, loaded in parallel with the data. */

export { draw } from "./base.js";
export { concentration } from "./concentration.js";
export { dataTable } from "./data-table.js";
export { holdersOverTime } from "./holders.js";
export { donut } from "./ownership.js";
export { treemap } from "./treemap.js";
