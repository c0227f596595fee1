/** Columns of the table of changed holders. */

import { negated, toPixels } from "../decimal.js";
import { el, figure, valued } from "../dom.js";
import { exact, moment, percent, trend } from "../format.js";
import { reasonOf } from "../status.js";
import { bar, fullAt, holder } from "../token.js";

const KINDS = {
  New: "In the later cap table only",
  Gone: "In the earlier cap table only",
  Changed: "In both cap tables, with a different balance",
};

/** @param {any} report the summary @returns {import("../table.js").Column[]} */
export function columns({ token, from, to, largest }) {
  const known = largest.map(({ difference }) => difference).filter((difference) => difference !== null);
  const full = fullAt(known);
  const isCut = Math.abs(toPixels(known[0] ?? null)) > full;
  const style = { decimals: token.decimals };
  return [
    { key: "holder", label: "Holder", sort: "wallet", cell: (row) => holder(row, token) },
    { key: "kind", label: "Change", cell: kind },
    {
      key: "before",
      label: "Before",
      number: true,
      hint: at(from),
      cell: (row) => valued(row.quantityBefore, row.quantityStatus, style),
    },
    {
      key: "after",
      label: "After",
      number: true,
      hint: at(to),
      cell: (row) => valued(row.quantityAfter, row.quantityStatus, style),
    },
    {
      key: "difference",
      label: "Difference",
      sort: "difference",
      descending: true,
      number: true,
      hint:
        "By size, positive or negative" +
        (isCut ? "; the largest one's bar is cut, so that the others can be compared" : ""),
      cell: (row) => difference(row, full, style),
    },
    { key: "shares", label: "Share of supply", number: true, hint: "At the earlier and the later moment", cell: shares },
  ];
}

const at = ({ at: when }) => (when === null ? undefined : moment(when));

function kind({ change, quantityStatus }) {
  const title = [KINDS[change], quantityStatus !== "Known" && reasonOf(quantityStatus)].filter(Boolean).join("\n");
  return el(change === "Changed" ? "span.sub" : `span.badge.${change.toLowerCase()}`, { title }, change);
}

function difference(row, full, style) {
  const number = valued(row.difference, row.quantityStatus, { ...style, signed: true });
  if (row.difference === null) return number;
  const direction = trend(row.difference);
  const length = direction === "down" ? negated(row.difference) : row.difference;
  return el("span.barred.signed", null, el(`span.diverging.${direction}`, null, bar(length, full)), number);
}

function shares(row) {
  const before = share(row.percentageBefore, row.quantityBefore, row.percentageBeforeStatus, row);
  const after = share(row.percentageAfter, row.quantityAfter, row.percentageAfterStatus, row);
  return el("span.from-to", null, before, el("span.sub", null, "→"), after);
}

function share(percentage, quantity, status, { quantityStatus }) {
  if (percentage === null) return figure("", { missing: reasonOf(quantity === null ? quantityStatus : status) });
  return figure(percent(percentage), { title: `${exact(percentage)} %` });
}
