/** Banner of an incomplete report at the top of the page; for the owner, with the request that completes it. */

import { byId, copy, el, fill, icon } from "./dom.js";

// In the index, which is only for the tenant; for a frame of another site this is null.
const isInIndex = () => window.frameElement?.classList.contains("report") === true;

/**
 * Draw or hide the banner.
 *
 * @param {null | {title: string, why: string, call?: string | null, isMost?: boolean, isHarmless?: boolean}} missing
 *     null hides it; `isMost`: most data is missing; `isHarmless`: the report is correct nevertheless
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
