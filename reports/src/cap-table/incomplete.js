/** Banner of a cap table that may lack holders. */

import { compare } from "../decimal.js";
import { percent, trend } from "../format.js";

const HALF = "50";
const REST = "The figures below cover the known holders; figures that depend on others are left out.";

/**
 * @param {any} summary
 * @returns {Parameters<typeof import("../incomplete.js").drawIncomplete>[0]}
 */
export function missingHolders({ token, holdersStatus, totalSupplyStatus, unattributed: { percentage }, isCurrent }) {
  if (holdersStatus === "Complete") return null;
  const direction = trend(percentage);
  const isUnconfirmed = totalSupplyStatus === "Unconfirmed";
  // No holder is known to be missing; the supply's tile shows that it is unconfirmed.
  if (isUnconfirmed && direction === "flat") return null;
  const reasons = isUnconfirmed ? { ...WHY, down: () => UNCONFIRMED } : WHY;
  const isMost = percentage !== null && compare(percentage, HALF) > 0;
  const title = isMost
    ? `Most of the supply has no known holder${isCurrent ? "" : " at that moment"}`
    : isCurrent
      ? "Holders may be missing"
      : "Not every holder of that moment is known";
  return {
    title,
    why: `${percentage === null ? "The total supply is not known." : reasons[direction](percent(percentage))} ${REST}`,
    call: direction === "down" ? null : `POST /v1/tokens/${token.id}/history-requests {"from": "creation", "to": "now"}`,
    isMost,
  };
}

const UNCONFIRMED = "No reading of the chain confirms the total supply at this moment, and the balances add up to more.";
const WHY = {
  up: (share) => `${share} of the total supply belongs to holders that are not known yet.`,
  flat: () => "The history since the contract's creation is not collected.",
  down: () => "The balances add up to more than the total supply that the contract reports.",
};
