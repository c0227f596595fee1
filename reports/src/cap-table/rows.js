/** The table of a cap table's holders: its columns. */

import { toPixels } from "../decimal.js";
import { copyable, el, figure, isolated, name, valued } from "../dom.js";
import { amount, compact, count, exact, percent, shortened, trend } from "../format.js";
import { checkOf, reasonOf } from "../status.js";

let widest = 100; // share of the largest holder: of the whole supply, most bars would be too small to see

/** @param {any} report the summary @returns {import("../table.js").Column[]} */
export function columns({ token, currency, largest }) {
  widest = toPixels(largest[0]?.percentage ?? null) || 100;
  const unit = token.decimals === null ? "base units" : isolated(token.symbol);
  return [
    { key: "rank", label: "#", sort: "rank", number: true, cell: (row) => count(row.rank) },
    { key: "holder", label: "Holder", sort: "wallet", cell: holder },
    {
      key: "quantity",
      label: `Quantity (${unit})`,
      sort: "quantity",
      descending: true,
      number: true,
      cell: (row) => figure(amount(row.quantity, token), { title: exact(row.quantity) }),
    },
    { key: "share", label: "Share of supply", sort: "percentage", descending: true, number: true, cell: share },
    {
      key: "value",
      label: `Value (${currency})`,
      sort: "value",
      descending: true,
      number: true,
      cell: (row) => valued(row.value, row.valueStatus, { currency }),
    },
    {
      key: "change",
      label: "30-day change",
      number: true,
      hint: "Quantity now less that of 30 days before",
      cell: change,
    },
    { key: "check", label: "Reconciliation", sort: "reconciliation", cell: check },
  ];
}

function holder(row) {
  const address = copyable(row.wallet, shortened(row.wallet), "address");
  return row.name === null ? address : el("span.named", null, name(row.name), address);
}

function share(row) {
  if (row.percentage === null) return figure("", { missing: reasonOf(row.percentageStatus) });
  const bar = el("span.bar", { "aria-hidden": true }, el("i"));
  bar.firstChild.style.width = `${Math.min(100, Math.max(0, (toPixels(row.percentage) / widest) * 100))}%`;
  return el("span.barred", null, bar, figure(percent(row.percentage), { title: `${exact(row.percentage)} %` }));
}

function change(row) {
  if (row.change30d === null) return figure("", { missing: reasonOf(row.change30dStatus) });
  return figure(compact(row.change30d, { signed: true }), {
    title: exact(row.change30d, { signed: true }),
    className: trend(row.change30d),
  });
}

function check({ reconciliation, checkedBlockNumber }) {
  const { word, meaning } = checkOf(reconciliation);
  const block =
    checkedBlockNumber === null
      ? "Never compared with the chain."
      : `Compared at block ${count(checkedBlockNumber)}.`;
  return el(`span.badge.${reconciliation.toLowerCase()}`, { title: `${meaning}\n${block}` }, word);
}
