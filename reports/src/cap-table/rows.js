/** The table of a cap table's holders: its columns. */

import { toPixels } from "../decimal.js";
import { checkMark, el, explored, figure, isolated, name, valued } from "../dom.js";
import { amount, count, exact, percent, trend } from "../format.js";
import { reasonOf, usualState } from "../status.js";

const OF_SECOND = 2; // a bar is full at so many times the second largest share: else one large holder makes dots of all

const HOLDERS = { Burn: "burn address", Token: "token contract", Wallet: "own wallet" };

let fullAt = 100; // percent

/** @param {any} report the summary @returns {import("../table.js").Column[]} */
export function columns({ token, currency, largest, reconciliation }) {
  const [first, second] = largest.map(({ percentage }) => toPixels(percentage));
  fullAt = Math.min(first || 100, OF_SECOND * (second || first || 100));
  const usual = usualState(reconciliation);
  const unit = token.decimals === null ? "base units" : isolated(token.symbol);
  return [
    { key: "rank", label: "#", sort: "rank", number: true, cell: (row) => count(row.rank) },
    { key: "holder", label: "Holder", sort: "wallet", cell: (row) => holder(row, token) },
    {
      key: "quantity",
      label: `Quantity (${unit})`,
      sort: "quantity",
      descending: true,
      number: true,
      cell: (row) => figure(amount(row.quantity, token), { title: exact(row.quantity) }),
    },
    {
      key: "share",
      label: "Share of supply",
      sort: "percentage",
      descending: true,
      number: true,
      hint: first > fullAt ? "The largest holder's bar is cut, so that the others can be compared" : undefined,
      cell: share,
    },
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
      cell: (row) => change(row, token),
    },
    { key: "check", label: "Reconciliation", sort: "reconciliation", cell: (row) => check(row, usual) },
  ];
}

function holder(row, { explorer }) {
  const address = explored(explorer, "address", row.wallet, "address");
  const type = row.holderType === null ? null : el("span.kind", null, HOLDERS[row.holderType] ?? row.holderType);
  if (row.name === null) return type === null ? address : el("span.named", null, address, type);
  return el("span.named", null, el("span", null, name(row.name), type && " ", type), address);
}

function share(row) {
  if (row.percentage === null) return figure("", { missing: reasonOf(row.percentageStatus) });
  const bar = el("span.bar", { "aria-hidden": true }, el("i"));
  const width = Math.max(0, (toPixels(row.percentage) / fullAt) * 100);
  bar.firstChild.style.width = `${Math.min(100, width)}%`;
  bar.classList.toggle("cut", width > 100.5);
  return el("span.barred", null, bar, figure(percent(row.percentage), { title: `${exact(row.percentage)} %` }));
}

function change(row, { decimals }) {
  if (row.change30d === null) return figure("", { missing: reasonOf(row.change30dStatus) });
  return figure(amount(row.change30d, { signed: true, decimals }), {
    title: exact(row.change30d, { signed: true }),
    className: trend(row.change30d),
  });
}

function check({ reconciliation, checkedBlockNumber }, usual) {
  const block =
    checkedBlockNumber === null
      ? "Never compared with the chain."
      : `Compared at block ${count(checkedBlockNumber)}.`;
  return checkMark(reconciliation, usual, block);
}
