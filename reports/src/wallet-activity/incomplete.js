/** Banner of a wallet's report about missing history. */

import { isolated } from "../dom.js";
import { count, day, plural, shortened } from "../format.js";
import { gapReason, reasonOf } from "../status.js";

const MOST_NAMED = 3;

/**
 * @param {any} summary
 * @returns {Parameters<typeof import("../incomplete.js").drawIncomplete>[0]}
 */
export function missingHistory({ wallet, coverage, holdingsComplete }) {
  const { gaps } = coverage;
  if (!gaps.length && holdingsComplete) return null;
  const why = gaps.length
    ? `Not collected: ${gaps.slice(0, MOST_NAMED).map(describe).join("; ")}${more(gaps)}. Activities of that time are not shown.`
    : "The collected history does not reach the wallet's first block: balances from before may be missing.";
  const call = holdingsComplete ? null : `POST /v1/wallets/${wallet.id}/history-requests {"from": "creation", "to": "now"}`;
  return { title: gaps.length ? "History is missing" : "Earlier history is missing", why, call, isMost: false };
}

/**
 * Explain which movements the net flow omits.
 * @param {any} summary
 * @returns {string} empty when the net flow is complete
 */
export function leftOut({ flows, coverage }) {
  const parts = flows.leftOut.map(
    ({ token, status, count: number, pricedFrom }) =>
      `${isolated(token.symbol ?? shortened(token.ledgerId))}, ${count(number)} (${whyWithout(status, pricedFrom)})`,
  );
  const others = parts.length > MOST_NAMED ? `; and ${count(parts.length - MOST_NAMED)} more` : "";
  const named = parts.slice(0, MOST_NAMED).join("; ");
  const hasGaps = flows.net !== null && !coverage.complete;
  return [
    parts.length && `Movements that the net flow leaves out: ${named}${others}.`,
    hasGaps && "The net flow leaves out the time that is not collected.",
  ]
    .filter(Boolean)
    .join(" ");
}

function whyWithout(status, pricedFrom) {
  if (pricedFrom !== null) return `no price before ${day(pricedFrom)}`;
  return status === "NoPrice" ? "no price at the time" : reasonOf(status).toLowerCase();
}

const describe = ({ from, to, reason }) =>
  `${from ? day(from) : "the beginning"} – ${to ? day(to) : "now"} (${gapReason(reason)})`;

const more = ({ length }) => (length > MOST_NAMED ? `; and ${plural(length - MOST_NAMED, "more gap")}` : "");
