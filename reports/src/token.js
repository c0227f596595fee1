/** Shared by the reports of a token: title, unit, identity of holders, and bars that compare holders. */

import { toPixels } from "./decimal.js";
import { el, explored, isolated, name } from "./dom.js";

const OF_SECOND = 2; // times the second largest value fill a bar; otherwise one large holder makes all others dots

const HOLDERS = { Burn: "burn address", Token: "token contract", Wallet: "tracked wallet" };

/** @param {{name: string | null, symbol: string}} token @returns {Node[]} */
export const titleOf = (token) =>
  token.name === null ? [name(token.symbol)] : [name(token.name), name(token.symbol, { class: "symbol" })];

/** @param {string} report such as "Cap table" @param {any} token @returns {(Node | string)[]} */
export const subtitleOf = (report, { networkDisplayName, explorer, ledgerId }) => [
  `${report} · ${networkDisplayName} · `,
  explored(explorer, "address", ledgerId, "contract address"),
];

/** @param {{decimals: number | null, symbol: string}} token @returns {string} unit of its quantities */
export const unitOf = ({ decimals, symbol }) => (decimals === null ? "base units" : isolated(symbol));

/**
 * A holder's cell: the address with the kind of holder, under its name if it has one.
 * @param {{wallet: string, name: string | null, holderType?: string | null, walletTrackingStatus?: string | null}} row
 * @param {{explorer: string | null}} token
 */
export function holder(row, { explorer }) {
  const address = explored(explorer, "address", row.wallet, "address");
  const kind = kindOf(row);
  const where = kind === null ? address : el("span.where", null, address, " ", el("span.kind", null, kind));
  return row.name === null ? where : el("span.named", null, name(row.name), where);
}

/**
 * Return the kind of a holder, unless its own name shows it. An untracked wallet only has a name.
 * @param {{name: string | null, holderType?: string | null, walletTrackingStatus?: string | null}} row
 * @returns {string | null}
 */
export function kindOf({ name: called, holderType = null, walletTrackingStatus = null }) {
  if (holderType === null) return null;
  if (holderType !== "Wallet") return HOLDERS[holderType] ?? holderType;
  return walletTrackingStatus === "enabled" && !/wallet/i.test(called ?? "") ? HOLDERS.Wallet : null;
}

/**
 * Value of a full bar in a column.
 * @param {(string | null)[]} lengths plain decimals, largest absolute value first
 * @returns {number} not zero; bars of larger values are cut
 */
export function fullAt(lengths) {
  const [first, second] = lengths.map((text) => Math.abs(toPixels(text)));
  return Math.min(first || 1, OF_SECOND * (second || first || 1));
}

/** @param {string} length plain decimal @param {number} full @returns {HTMLElement} cut where it is longer than full */
export function bar(length, full) {
  const element = el("span.bar", { "aria-hidden": true }, el("i"));
  const width = Math.max(0, (toPixels(length) / full) * 100);
  element.firstChild.style.width = `${Math.min(100, width)}%`;
  element.classList.toggle("cut", width > 100.5);
  return element;
}
