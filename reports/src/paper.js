/** A report on paper: what stands on each sheet, and whether all rows are printed. */

import { count, instant } from "./format.js";

/** Whether the address asks for a page that holds every row, for what prints without pressing a button. */
export const printsEverything = () => new URLSearchParams(location.search).get("rows") === "all";

/**
 * Print. A site that frames the report may forbid it, silently.
 * @returns {boolean} whether it was allowed
 */
export function print() {
  let allowed = false;
  window.addEventListener("beforeprint", () => (allowed = true), { once: true });
  window.print();
  return allowed;
}

/**
 * Say on every sheet what it is of; `print.css` puts it into the margins, beside the number of the sheet.
 * @param {string} title of the report
 * @param {{blockNumber: number | null, blockHash: string | null, blockTime: string | null}} asOf
 * @param {string} without what stands in place of a block
 */
export function markSheets(title, { blockNumber, blockHash, blockTime }, without) {
  const block = blockNumber === null ? without : `As of block ${count(blockNumber)}`;
  const moment = [block, blockTime && instant(blockTime, { seconds: true }), blockHash].filter(Boolean).join(" · ");
  const { style } = document.documentElement;
  style.setProperty("--sheet-title", quoted(title));
  style.setProperty("--sheet-moment", quoted(moment));
}

// A string of CSS; whatever could end it is written by its number.
const quoted = (text) =>
  `"${text.replace(/[^ 0-9A-Za-z]/gu, (character) => `\\${character.codePointAt(0).toString(16)} `)}"`;
