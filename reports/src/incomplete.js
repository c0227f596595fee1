/** The banner, first on a page: what is missing of what the report shows, and the one call that fills it. */

import { byId, el, fill, icon } from "./dom.js";

/**
 * @param {null | {title: string, why: string, call: string | null, isMost: boolean}} missing null: nothing is; `isMost`:
 *     what is missing is more than what is there
 */
export function drawIncomplete(missing) {
  byId("incomplete").hidden = missing === null;
  if (missing === null) return;
  const { title, why, call, isMost } = missing;
  byId("incomplete").classList.toggle("most", isMost);
  fill(
    "incomplete",
    icon("alert"),
    el(
      "div",
      null,
      el("h2", { id: "incomplete-title" }, title),
      el("p", null, why),
      call && el("p", null, "One call reads the whole history: ", el("code", null, call)),
    ),
  );
}
