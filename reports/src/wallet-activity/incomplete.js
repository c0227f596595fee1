/** What a wallet's report says of history that it lacks. */

import { day, plural } from "../format.js";
import { gapReason } from "../status.js";

const MOST_NAMED = 3;

/**
 * @param {any} summary
 * @returns {Parameters<typeof import("../incomplete.js").drawIncomplete>[0]}
 */
export function missingHistory({ wallet, coverage, holdingsComplete }) {
  const { gaps } = coverage;
  if (!gaps.length && holdingsComplete) return null;
  const why = gaps.length
    ? `Not collected: ${gaps.slice(0, MOST_NAMED).map(describe).join("; ")}${more(gaps)}. What happened then is not below.`
    : "What is collected does not reach the wallet's first block: what came in before and stayed may be missing.";
  const call = holdingsComplete ? null : `POST /v1/wallets/${wallet.id}/history-requests {"from": "creation", "to": "now"}`;
  return { title: gaps.length ? "History is missing" : "Earlier history is missing", why, call, isMost: false };
}

const describe = ({ from, to, reason }) =>
  `${from ? day(from) : "the beginning"} – ${to ? day(to) : "now"} (${gapReason(reason)})`;

const more = ({ length }) => (length > MOST_NAMED ? `; and ${plural(length - MOST_NAMED, "more gap")}` : "");
