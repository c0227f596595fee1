/** Print of a report: heading of each sheet, and number of printed rows. */

import { count, instant } from "./format.js";

/** True if the address requests all rows on the page, for programs that print without pressing a button. */
export const printsEverything = () => new URLSearchParams(location.search).get("rows") === "all";

/**
 * Print. A site that frames the report may silently forbid it.
 * @returns {boolean} whether it was allowed
 */
export function print() {
  let allowed = false;
  window.addEventListener("beforeprint", () => (allowed = true), { once: true });
  window.print();
  return allowed;
}

/**
 * Set the heading of every sheet; `print.css` puts it into the margins, next to the page number.
 *
 * @typedef {{blockNumber: number | null, blockHash: string | null, blockTime: string | null}} AsOf
 * @param {string} title of the report.
 * @param {AsOf} asOf
 * @param {string} without text used without a block.
 * @param {AsOf | null} [from] earlier moment of a report of two, on a separate line
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

// A CSS string; characters that could end it are escaped by number.
const quoted = (text) =>
  `"${text.replace(/[^ 0-9A-Za-z]/gu, (character) => `\\${character.codePointAt(0).toString(16)} `)}"`;
