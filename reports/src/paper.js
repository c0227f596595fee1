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
 * @typedef {{blockNumber: number | null, blockHash: string | null, blockTime: string | null}} AsOf
 * @param {string} title of the report
 * @param {AsOf} asOf
 * @param {string} without what stands in place of a block
 * @param {AsOf | null} [from] the earlier moment of a report of two, on a line of its own
 */
export function markSheets(title, asOf, without, from = null) {
  const lines =
    from === null
      ? [described("As of block", asOf, without)]
      : [described("From block", from, without), described("To block", asOf, without)];
  const { style } = document.documentElement;
  style.setProperty("--sheet-title", quoted(title));
  style.setProperty("--sheet-moment", quoted(lines.join("\n")));
}

function described(label, { blockNumber, blockHash, blockTime }, without) {
  const block = blockNumber === null ? without : `${label} ${count(blockNumber)}`;
  return [block, blockTime && instant(blockTime, { seconds: true }), blockHash].filter(Boolean).join(" · ");
}

// A string of CSS; whatever could end it is written by its number.
const quoted = (text) =>
  `"${text.replace(/[^ 0-9A-Za-z]/gu, (character) => `\\${character.codePointAt(0).toString(16)} `)}"`;
