/** Columns and filters of the table of a wallet's activities. */

import { byId, el, explored, figure, name } from "../dom.js";
import { MISSING, amount, clock, count, dateTime, day, exact, instant, shortened, trend } from "../format.js";
import { reasonOf, typeOf } from "../status.js";

const label = ({ symbol, ledgerId }) => symbol ?? shortened(ledgerId);

/**
 * Fill the filters with the types and tokens of the report's activities.
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
 * Attach fees to the rows that show them.
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
      orders: ["Oldest first", "Newest first"],
      cell: time,
    },
    { key: "type", label: "Type", sort: "type", cell: (row) => type(row, currency) },
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
      cell: (row) => transaction(row, explorer),
    },
  ];
}

const transaction = ({ transactionHash }, explorer) =>
  transactionHash === null
    ? el("span.missing", null, "—")
    : explored(explorer, "tx", transactionHash, "transaction hash");

function feeLine({ amount: paid, amountStatus, value, token }, currency) {
  if (paid === null) return el("span.sub.fee", null, `Fee: ${reasonOf(amountStatus).toLowerCase()}`);
  const worth = value === null ? "" : ` · ${amount(value, { currency })}`;
  const title = `${exact(paid)} ${label(token)}${value === null ? "" : `\n${exact(value, { currency })}`}`;
  return el("span.sub.fee", { title }, "Fee ", amount(paid), " ", el("bdi", null, label(token)), worth);
}

const isByTime = (sort) => sort.replace("-", "") === "date";
const isTail = ({ status }) => status === "Confirmed";
const TAIL = "The network may still replace the blocks of these activities; the figures would follow.";

/**
 * Sorted by time: put the day above its rows, and mark once which rows are not final yet.
 * @param {any[]} rows of a page
 * @param {string} sort
 * @returns {any[]} rows, and `{line, title, kind}` between them
 */
export function inDays(rows, sort) {
  if (!isByTime(sort)) return rows;
  const isDown = sort.startsWith("-");
  const edge = isDown ? rows.findLastIndex(isTail) + 1 : rows.findIndex(isTail);
  const tail = { line: `${isDown ? "Above" : "Below"} this line: not final yet`, title: TAIL, kind: "tail" };
  const hasTail = rows.some(isTail);
  const found = rows.flatMap((row, index) => {
    const today = dayOf(row);
    const isNext = index === 0 || today !== dayOf(rows[index - 1]);
    return [hasTail && index === edge && tail, isNext && { line: today, kind: "day" }, row].filter(Boolean);
  });
  return hasTail && edge === rows.length ? [...found, tail] : found;
}

const dayOf = ({ date }) => (date === null ? reasonOf("UnknownTime") : day(date));

function time(row, sort) {
  const { date, blockNumber, status } = row;
  const title = `${instant(date, { seconds: true })}\nBlock ${count(blockNumber)}, ${status.toLowerCase()}`;
  if (isByTime(sort)) return el("time", { datetime: date, title }, date === null ? MISSING : clock(date));
  const tail = isTail(row) && el("span.sub", { title: TAIL }, " · not final");
  return el("span", null, el("time", { datetime: date, title }, dateTime(date)), tail);
}

// A fee on top of the amount has no value of its own.
const ownFee = ({ fee, amountStatus, token }) =>
  fee === null ? [] : [{ amount: fee, amountStatus, value: null, token }];

function type(row, currency) {
  const { type: kind, status } = row;
  const fees = [...row.fees, ...ownFee(row)];
  const failed = status === "Failed" && el("span.badge.failed", null, "Failed");
  const types = el("span.types", null, el(`span.badge.type.${kind.toLowerCase()}`, null, typeOf(kind)), failed);
  return fees.length ? el("span.named", null, types, ...fees.map((fee) => feeLine(fee, currency))) : types;
}

// Quantities in responses are unsigned; the direction gives the sign, and a failed transaction moved nothing.
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

/**
 * The words for a row without a single counterparty, and the listed addresses.
 * @param {{counterpartyStatus: string, counterpartyCount: number | null, counterparties: string[]}} row
 * @returns {{shown: string, title: string | null}}
 */
export function otherSide({ counterpartyStatus, counterpartyCount, counterparties }) {
  if (counterpartyStatus === "NotRead")
    return { shown: "Not read", title: "The transaction's inputs are not all known." };
  if (counterpartyStatus !== "Several") return { shown: "—", title: null };
  const more = counterpartyCount - counterparties.length;
  const listed = more > 0 ? [...counterparties, `${count(more)} more`] : counterparties;
  return { shown: `${count(counterpartyCount)} counterparties`, title: listed.join("\n") };
}

function counterparty(row, explorer) {
  const { counterparty: address, counterpartyName } = row;
  if (address === null) {
    const { shown, title } = otherSide(row);
    return el(row.counterpartyStatus === "Several" ? "span" : "span.missing", { title }, shown);
  }
  const button = explored(explorer, "address", address, "address");
  return counterpartyName === null ? button : el("span.named", null, name(counterpartyName), button);
}
