/** Table with the numbers of a chart, for screen readers and exact digits; built when opened. */

import { byId, el } from "../dom.js";

/**
 * @param {string} id of a details element
 * @param {string} caption
 * @param {string[]} columns
 * @param {() => (string | Node)[][]} rows
 */
export function dataTable(id, caption, columns, rows) {
  const details = byId(id);
  details.querySelector(".data-rows")?.remove();
  details.open = false;
  details.querySelector("summary").onclick = () => {
    if (details.querySelector(".data-rows")) return;
    const head = el("tr", null, ...columns.map((column) => el("th", { scope: "col" }, column)));
    const body = rows().map((row) => el("tr", null, ...row.map((cell) => el("td", null, cell))));
    const table = el(
      "table",
      null,
      el("caption.hidden-visually", null, caption),
      el("thead", null, head),
      el("tbody", null, ...body),
    );
    details.append(el("div.data-rows", { tabindex: 0, role: "region", "aria-label": `Table: ${caption}` }, table));
  };
}
