/** The banner of an incomplete report, first on the page, with the request that completes it for the owner. */

import { byId, copy, el, fill, icon } from "./dom.js";

// In the list of reports, which is for the tenant alone; a frame of another site is null here.
const isInIndex = () => window.frameElement?.classList.contains("report") === true;

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
      call && isInIndex() && el("p", null, "One request reads the whole history: ", request(call)),
    ),
  );
}

function request(call) {
  const button = el("button", { type: "button", class: "no-print" }, "Copy");
  button.addEventListener("click", () => copy(call) && (button.textContent = "Copied"));
  return el("span.request", null, el("code", null, call), " ", button);
}
