/** The table of a wallet's activities: its columns and filters. */

import { byId, el, explored, figure, name } from "../dom.js";
import { amount, count, dateTime, exact, instant, shortened, trend } from "../format.js";
import { reasonOf, typeOf } from "../status.js";

const label = ({ symbol, ledgerId }) => symbol ?? shortened(ledgerId);

/**
 * Offer the types and tokens that the report's activities have.
 * @param {{types: string[], tokens: any[]}} report
 */
export function fillFilters({ types, tokens }) {
  options(
    "filter-type",
    "All types",
    types.map((type) => [type, typeOf(type)]),
  );
  options(
    "filter-token",
    "All tokens",
    tokens.map((token) => [token.ledgerId, label(token)]),
  );
}

function options(id, all, pairs) {
  const select = byId(id);
  const kept = select.value;
  select.replaceChildren(
    el("option", { value: "" }, all),
    ...pairs.map(([value, text]) => el("option", { value }, text)),
  );
  if (pairs.some(([value]) => value === kept)) select.value = kept;
}

/**
 * Put fees to the rows that they are shown with.
 * @param {{data: any[], fees?: {activityId: string, fee: any}[]}} page
 * @returns {any[]}
 */
export const withFees = ({ data, fees = [] }) =>
  data.map((row) => ({
    ...row,
    fees: fees.filter(({ activityId }) => activityId === row.id).map(({ fee }) => fee),
  }));

/** @param {any} report the summary @returns {import("../table.js").Column[]} */
export function columns({ currency, wallet: { explorer } }) {
  return [
    {
      key: "time",
      label: "Time (UTC)",
      sort: "date",
      descending: true,
      cell: time,
    },
    { key: "type", label: "Type", sort: "type", cell: type },
    {
      key: "token",
      label: "Token",
      sort: "token",
      cell: ({ token }) => el("bdi.name", { title: token.ledgerId }, label(token)),
    },
    {
      key: "quantity",
      label: "Quantity",
      sort: "quantity",
      descending: true,
      number: true,
      cell: (row) =>
        row.amount === null ? figure("", { missing: reasonOf(row.amountStatus) }) : signed(row, row.amount),
    },
    {
      key: "value",
      label: `Value (${currency})`,
      sort: "value",
      descending: true,
      number: true,
      cell: (row) =>
        row.value === null ? figure("", { missing: reasonOf(row.valueStatus) }) : signed(row, row.value, currency),
    },
    { key: "counterparty", label: "Counterparty", sort: "counterparty", cell: (row) => counterparty(row, explorer) },
    {
      key: "transaction",
      label: "Transaction",
      cell: (row) => transaction(row, currency, explorer),
    },
  ];
}

function transaction({ transactionHash, fees }, currency, explorer) {
  if (transactionHash === null) return el("span.missing", null, "—");
  const hash = explored(explorer, "tx", transactionHash, "transaction hash");
  return fees.length ? el("span.named", null, hash, ...fees.map((fee) => feeLine(fee, currency))) : hash;
}

function feeLine({ amount: paid, amountStatus, value, token }, currency) {
  if (paid === null) return el("span.sub", null, `Fee: ${reasonOf(amountStatus).toLowerCase()}`);
  const worth = value === null ? "" : ` · ${amount(value, { currency })}`;
  const title = `${exact(paid)} ${label(token)}${value === null ? "" : `\n${exact(value, { currency })}`}`;
  return el("span.sub", { title }, "Fee ", amount(paid), " ", el("bdi", null, label(token)), worth);
}

function time({ date, blockNumber, status }) {
  const title = `${instant(date, { seconds: true })}\nBlock ${count(blockNumber)}, ${status.toLowerCase()}`;
  return el("time", { datetime: date, title }, dateTime(date));
}

function type({ type: kind, status }) {
  const failed = status === "Failed" && el("span.badge.failed", null, "Failed");
  const tail =
    status === "Confirmed" &&
    el("span.badge.confirmed", { title: "The network may still replace its block." }, "Confirmed");
  return el("span.types", null, el(`span.badge.type.${kind.toLowerCase()}`, null, typeOf(kind)), failed || tail);
}

// Quantities are unsigned on the wire; the direction gives the sign, and a failed transaction moved nothing.
function signed({ direction, status }, text, currency) {
  const moved = status === "Failed" ? null : { In: "up", Out: "down" }[direction];
  const value = moved === "down" && !text.startsWith("-") ? `-${text}` : text;
  const style = { currency, signed: moved !== null && moved !== undefined };
  const shown = style.signed ? value : text;
  return figure(amount(shown, style), {
    title: exact(shown, style),
    className: trend(text) === "flat" ? "" : (moved ?? ""),
  });
}

function counterparty({ counterparty: address, counterpartyName }, explorer) {
  if (address === null) return el("span.missing", null, "—");
  const button = explored(explorer, "address", address, "address");
  return counterpartyName === null ? button : el("span.named", null, name(counterpartyName), button);
}
