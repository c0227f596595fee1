/** The banner, first on a page: what is missing of what the report shows, and the one call that fills it. */

import { byId, el, fill, icon } from "./dom.js";

/**
 * @param {null | {title: string, why: string, call?: string | null, isMost?: boolean, isHarmless?: boolean}} missing null:
 *     nothing is; `isMost`: what is missing is more than what is there; `isHarmless`: the report is right without it
 */
export function drawIncomplete(missing) {
  byId("incomplete").hidden = missing === null;
  if (missing === null) return;
  const { title, why, call = null, isMost = false, isHarmless = false } = missing;
  byId("incomplete").classList.toggle("most", isMost);
  byId("incomplete").classList.toggle("harmless", isHarmless);
  fill(
    "incomplete",
    icon(isHarmless ? "coverage" : "alert"),
    el(
      "div",
      null,
      el("h2", { id: "incomplete-title" }, title),
      el("p", null, why),
      call && el("p", null, "One call reads the whole history: ", el("code", null, call)),
    ),
  );
}
