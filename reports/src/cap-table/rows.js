/** Columns of the table of holders. */

import { toPixels } from "../decimal.js";
import { checkMark, el, figure, valued } from "../dom.js";
import { amount, count, exact, percent } from "../format.js";
import { reasonOf, usualState } from "../status.js";
import { bar, fullAt, holder, unitOf } from "../token.js";

/** @param {any} report the summary @returns {import("../table.js").Column[]} */
export function columns({ token, currency, largest, reconciliation }) {
  const shares = largest.map(({ percentage }) => percentage);
  const full = fullAt(shares);
  const usual = usualState(reconciliation);
  return [
    {
      key: "rank",
      label: "#",
      sort: "rank",
      number: true,
      orders: ["Largest holders first", "Smallest holders first"],
      cell: (row) => count(row.rank),
    },
    { key: "holder", label: "Holder", sort: "wallet", cell: (row) => holder(row, token) },
    {
      key: "quantity",
      label: `Quantity (${unitOf(token)})`,
      sort: "quantity",
      descending: true,
      isAlike: true,
      number: true,
      cell: (row) => figure(amount(row.quantity, token), { title: exact(row.quantity) }),
    },
    {
      key: "share",
      label: "Share of supply",
      sort: "percentage",
      descending: true,
      isAlike: true,
      number: true,
      hint: toPixels(shares[0] ?? null) > full ? "The largest holder's bar is cut, so that the others can be compared" : undefined,
      cell: (row) => share(row, full),
    },
    {
      key: "value",
      label: `Value (${currency})`,
      sort: "value",
      descending: true,
      isAlike: true,
      number: true,
      cell: (row) => valued(row.value, row.valueStatus, { currency }),
    },
    {
      key: "change",
      label: "30-day change",
      number: true,
      hint: "Quantity now minus the quantity 30 days before",
      cell: (row) => valued(row.change30d, row.change30dStatus, { signed: true, decimals: token.decimals }),
    },
    { key: "check", label: "Reconciliation", sort: "reconciliation", cell: (row) => check(row, usual) },
  ];
}

function share({ percentage, percentageStatus }, full) {
  if (percentage === null) return figure("", { missing: reasonOf(percentageStatus) });
  const number = figure(percent(percentage), { title: `${exact(percentage)} %` });
  return el("span.barred", null, bar(percentage, full), number);
}

function check({ reconciliation, checkedBlockNumber }, usual) {
  const block =
    checkedBlockNumber === null
      ? "Never compared with the chain."
      : `Compared at block ${count(checkedBlockNumber)}.`;
  return checkMark(reconciliation, usual, block);
}
