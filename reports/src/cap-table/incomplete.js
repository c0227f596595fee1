/** The banner of a cap table that may lack holders: what is missing, and how to fill it. */

import { byId, el, fill, icon } from "../dom.js";
import { percent, trend } from "../format.js";

const WHY = {
  up: (share) => `${share} of the total supply belongs to holders who were not seen yet.`,
  flat: () => "The history since the contract's creation is not collected.",
  down: () => "The balances add up to more than the total supply that the contract tells.",
};

/**
 * @param {any} summary
 * @param {boolean} collected without any holder the page says why instead
 */
export function drawIncomplete({ token, holdersStatus, unattributed, isCurrent }, collected) {
  byId("incomplete").hidden = holdersStatus === "Complete" || !collected;
  const { percentage } = unattributed;
  const why = percentage === null ? "The total supply is not known." : WHY[trend(percentage)](percent(percentage));
  const request = `POST /v1/tokens/${token.id}/history-requests {"from": "creation", "to": "now"}`;
  fill(
    "incomplete",
    icon("alert"),
    el(
      "div",
      null,
      el("h2", { id: "incomplete-title" }, isCurrent ? "Holders may be missing" : "Holders may have been missing then"),
      el("p", null, `${why} The figures below are of the holders seen; what depends on the others is left out.`),
      trend(percentage) !== "down" &&
        el(
          "p",
          null,
          "One call reads the token's whole history and finds them: ",
          el("code", null, request),
        ),
    ),
  );
}
