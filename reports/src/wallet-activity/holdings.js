/** Holdings of a wallet: positions with their values, and their shares of the total. */

import { compare, share, sum, toPixels } from "../decimal.js";
import { byId, checkMark, el, explored, figure, name, valued } from "../dom.js";
import { fitted } from "../fit.js";
import { MISSING, compact, exact, percent, plural, shortened, trend } from "../format.js";
import { reasonOf, usualState } from "../status.js";

const SHOWN_BALANCES = 8;
const SHOWN_SLICES = 7;

let summary = null;
let chartsReady = null;
let allBalances = false;

const fit = fitted(byId("balances"), ["share", "price", "change"]);

/**
 * @param {any} report the summary
 * @param {Promise<any>} ready the charts' module
 */
export function drawHoldings(report, ready) {
  [summary, chartsReady] = [report, ready];
  drawBalances();
}

// Largest value first; positions without a value come last.
function byValueDown({ value: one }, { value: other }) {
  if (one === null || other === null) return (one === null) - (other === null);
  return compare(other, one);
}

function drawBalances() {
  const { balances, currency, reconciliation, unpriced, totalValue } = summary;
  const usual = usualState(reconciliation);
  const byValue = [...balances].sort(byValueDown);
  const shown = allBalances ? byValue : byValue.slice(0, SHOWN_BALANCES);
  byId("balances-body").replaceChildren(...shown.map((position) => balanceRow(position, currency, usual)));
  fit();
  byId("balances-none").hidden = balances.length > 0;
  byId("balances-more").hidden = allBalances || balances.length <= SHOWN_BALANCES;
  byId("balances-more").textContent = `Show all ${plural(balances.length, "position")}`;
  const wanted = balances.some(({ quantity }) => quantity === null) ? "a balance or a price" : "a price";
  byId("balances-note").textContent = unpriced.length
    ? `Not in the wallet's value for want of ${wanted}: ${unpriced.map((each) => shortened(each)).join(", ")}.`
    : "";
  const slices = totalValue === null ? [] : slicesOf(byValue, totalValue);
  byId("allocation").hidden = slices.length === 0;
  if (slices.length) chartsReady.then((drawing) => drawAllocation(drawing, slices, totalValue, currency));
}

byId("balances-more").addEventListener("click", () => {
  allBalances = true;
  drawBalances();
});

function balanceRow(position, currency, usual) {
  const { token, quantity, quantityStatus, detail, price, priceStatus, value, valueStatus } = position;
  const { change24h, change24hStatus, reconciliation } = position;
  const part = partOf(value);
  const asset =
    token.ledgerId === "native"
      ? el("span.sub", null, "native")
      : explored(summary.wallet.explorer, "address", token.ledgerId, "contract address");
  return el(
    "tr",
    { role: "row" },
    el("td", { role: "cell" }, token.symbol === null ? asset : el("span.named", null, name(token.symbol), asset)),
    el("td.right", { role: "cell", title: detail }, valued(quantity, quantityStatus, {})),
    el("td.right.price", { role: "cell" }, briefly(price, priceStatus, { currency })),
    el("td.right.value", { role: "cell" }, valued(value, quantity === null ? quantityStatus : valueStatus, { currency })),
    el("td.right.share", { role: "cell" }, part === null ? MISSING : figure(percent(part), { title: `${exact(part)} %` })),
    el("td.right.change", { role: "cell" }, briefly(change24h, change24hStatus, { signed: true }, percent)),
    el("td.check", { role: "cell" }, checkMark(reconciliation, usual)),
  );
}

// The value's column shows the reason of a missing value; here it appears on hover.
const briefly = (text, status, style, show) =>
  text === null ? el("span.missing", { title: reasonOf(status) }, MISSING) : valued(text, status, style, show);

// Shares need a total above zero.
function partOf(value) {
  const { totalValue } = summary;
  return value === null || totalValue === null || trend(totalValue) !== "up" ? null : share(value, totalValue);
}

function slicesOf(byValue, totalValue) {
  const positive = byValue.filter(({ value }) => value !== null && trend(value) === "up");
  if (!positive.length || trend(totalValue) !== "up") return [];
  const slice = (text, value, kind, title) => ({
    name: text,
    title,
    value,
    kind,
    pixels: toPixels(value),
    percentage: share(value, totalValue),
  });
  const first = positive
    .slice(0, SHOWN_SLICES)
    .map(({ token, value }) => slice(token.symbol ?? shortened(token.ledgerId), value, "holder", token.ledgerId));
  const others = positive.slice(SHOWN_SLICES);
  return others.length
    ? [...first, slice(plural(others.length, "other"), sum(others.map(({ value }) => value)), "others")]
    : first;
}

function drawAllocation(drawing, slices, totalValue, currency) {
  const text = `Allocation. ${slices.map((slice) => `${slice.name}: ${percent(slice.percentage)}`).join("; ")}.`;
  drawing.draw(
    "allocation-chart",
    text,
    drawing.donut(slices, { number: compact(totalValue, { currency }), label: "in priced assets" }),
  );
  byId("allocation-legend").replaceChildren(
    ...slices.map(({ name: asset, title, percentage, kind }, index) =>
      el(
        "li",
        null,
        el(`i.swatch.${kind === "holder" ? `c${index + 1}` : kind}`),
        el("bdi.name", { title }, asset),
        el("span.share", null, percent(percentage)),
      ),
    ),
  );
}
