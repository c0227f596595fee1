/** The cap table report: who holds a token at a moment, how unevenly, and how that came about. */

import { sum, toPixels } from "./decimal.js";
import { byId, copyable, el, figure, fill, isolated, name } from "./dom.js";
import { amount, compact, count, day, exact, fixed, instant, percent, plural, shortened, trend } from "./format.js";
import { Page } from "./page.js";
import { checkOf, reasonOf } from "./status.js";
import { drawHead, drawKpis, drawStrip, item, kpi, momentOf, whyEmpty } from "./strip.js";
import { Table, firstPage } from "./table.js";

const PATH = "/embed/data/cap-table";
const SORT = "rank";
const HIGHEST_UNCONCENTRATED = 1000; // of the HHI; above 1,800 highly (merger guidelines of 2023)
const HIGHEST_MODERATE = 1800;

// The charts are most of the page's weight: they arrive while the numbers are asked for.
const chartsReady = import("./charts/cap-table-charts.js");

let summary = null;
let table = null;
let charts = null;
let shape = "donut";

const page = new Page(async (session) => {
  const first = table ? null : firstPage(session, PATH, SORT);
  [summary] = await Promise.all([session.get(`${PATH}/summary`), first]);
  document.title = `${summary.token.name ?? summary.token.symbol} cap table`;
  table ??= new Table({ columns: columns(), path: PATH, sort: SORT, what: ["holder", "holders"], filters: ["filter-reconciliation"], onFailure: (failure) => page.fail(failure) });
  const collected = summary.holderCountStatus === "Counted";
  drawTop(collected);
  for (const part of document.querySelectorAll("[data-needs=data]")) part.hidden = !collected;
  byId("nothing").hidden = collected;
  if (!collected) return "empty";
  byId("content").hidden = false;
  const [drawing] = await Promise.all([chartsReady, table.start(session, summary.dataVersion, await first)]);
  charts = drawing;
  drawCharts();
  return "ready";
});

function drawTop(collected) {
  const { token, asOf, isCurrent, price, priceStatus, priceEffectiveFrom, currency } = summary;
  drawHead({
    title: [name(token.name ?? token.symbol), token.name && name(token.symbol, { class: "symbol" })].filter(Boolean),
    subtitle: [`Cap table · ${token.networkDisplayName} · `, copyable(token.ledgerId, shortened(token.ledgerId), "contract address")],
    moment: momentOf(asOf, isCurrent),
  });
  const since = priceEffectiveFrom && el("span.sub", null, `since ${instant(priceEffectiveFrom)}`);
  const priced = figure(amount(price, { currency }), { title: exact(price, { currency }), missing: price === null ? reasonOf(priceStatus) : null });
  priced.classList.add("figure");
  drawStrip({ ...summary, price: item("price", `Price of one ${isolated(token.symbol)}`, priced, since) });
  if (collected) drawKpis(...tiles());
  else fill("nothing", el("h2", null, "No holders to show yet"), el("p", null, whyEmpty(summary.coverage)));
}

function tiles() {
  const { token, totalSupply, totalSupplyStatus, holderCount, marketCapitalization, marketCapitalizationStatus, currency } = summary;
  const { top10, nakamoto, gini, hhi, status } = summary.concentration;
  const missing = (value, why) => (value === null ? reasonOf(why) : null);
  const unit = token.decimals === null ? "base units" : isolated(token.symbol);
  return [
    kpi("Total supply", figure(compact(totalSupply), { title: `${exact(totalSupply)} ${unit}`, missing: missing(totalSupply, totalSupplyStatus) }), unit),
    kpi("Holders", figure(count(holderCount)), unattributedLine()),
    kpi(
      "Market value",
      figure(compact(marketCapitalization, { currency }), { title: exact(marketCapitalization, { currency }), missing: missing(marketCapitalization, marketCapitalizationStatus) }),
      "supply × price",
    ),
    kpi("Top 10 holders", figure(percent(top10), { title: `${exact(top10)} %`, missing: missing(top10, status) }), largestLine()),
    kpi("Nakamoto coefficient", figure(count(nakamoto), { missing: nakamoto === null ? noMajority(status) : null }), "holders to exceed 50%"),
    kpi("Gini coefficient", figure(fixed(gini, 3), { title: exact(gini), missing: missing(gini, status) }), "0 equal · 1 one holder"),
    kpi("HHI", figure(hhi === null ? "" : count(Math.round(Number(hhi))), { title: exact(hhi), missing: missing(hhi, status) }), concentrationWord(hhi)),
  ];
}

const noMajority = (status) => (status === "Observed" ? "No majority" : reasonOf(status));

function largestLine() {
  const share = summary.largest[0]?.percentage ?? null;
  return share === null ? null : `largest ${percent(share)}`;
}

function unattributedLine() {
  return summary.unattributed.percentage === null ? null : `${percent(summary.unattributed.percentage)} not attributed`;
}

function concentrationWord(hhi) {
  if (hhi === null) return null;
  const index = Number(hhi); // 0 to 10,000: compared with round numbers only
  if (index < HIGHEST_UNCONCENTRATED) return "unconcentrated";
  return index <= HIGHEST_MODERATE ? "moderately concentrated" : "highly concentrated";
}

// --- charts

function drawCharts() {
  const { largest, curve, concentration, holdersOverTime, holderCount } = summary;
  const shares = largest.length > 0 && largest[0].percentage !== null;
  show("ownership", shares, drawOwnership);
  show("concentration", curve.length > 0, () => {
    const label = `Concentration curve. ${sentence(concentration)}`;
    charts.draw("concentration-chart", label, charts.concentration(curve, concentration.nakamoto));
    charts.dataTable("concentration-data", "Concentration curve", ["Largest holders", "Share of supply"], () =>
      curve.map((point) => [count(point.holders), `${exact(point.percentage)} %`]),
    );
  });
  show("history", holdersOverTime.length > 0, () => {
    const label = `Number of holders by day, ${day(holdersOverTime[0].date)} to ${day(holdersOverTime.at(-1).date)}; ${plural(holderCount, "holder")} at the end.`;
    charts.draw("history-chart", label, charts.holdersOverTime(holdersOverTime));
    byId("history-gaps").hidden = holdersOverTime.every((point) => point.holderCount !== null);
    charts.dataTable("history-data", "Holders by day", ["Day (UTC)", "Holders"], () =>
      holdersOverTime.map((point) => [day(point.date), point.holderCount === null ? reasonOf(point.holderCountStatus) : count(point.holderCount)]),
    );
  });
}

function sentence({ top10, nakamoto }) {
  const half = nakamoto === null ? "" : ` ${plural(nakamoto, "holder")} have more than half of the supply.`;
  return `The ten largest holders have ${percent(top10)}.${half}`;
}

function show(part, there, draw) {
  byId(`${part}-chart`).hidden = !there;
  byId(`${part}-none`).hidden = there;
  byId(`${part}-data`).hidden = !there;
  if (there) draw();
}

function slicesOf({ largest, holderCount, unattributed, concentration }) {
  const slices = largest.map((holder) => ({
    name: holder.name ?? shortened(holder.wallet),
    title: holder.name ? `${holder.name}\n${holder.wallet}` : holder.wallet,
    percentage: holder.percentage,
    kind: "holder",
  }));
  const others = rest(concentration.top10, unattributed.percentage);
  if (holderCount > largest.length) {
    slices.push({ name: plural(holderCount - largest.length, "other holder"), percentage: others, kind: "others" });
  }
  if (trend(unattributed.percentage) !== "flat") {
    slices.push({ name: "Not attributed", percentage: unattributed.percentage, kind: "rest", title: REST });
  }
  // A negative remainder (balances above the supply) has no area; the legend and the note say it.
  return slices.map((slice) => ({ ...slice, pixels: Math.max(0, toPixels(slice.percentage) ?? 0) }));
}

const REST = "Part of the supply that no holder seen so far has. History since the contract's creation makes it zero.";
const OVER = "The balances add up to more than the supply: this token's contract does not keep the rules.";

function rest(top10, unattributed) {
  return sum(["100", negated(top10), negated(unattributed)]);
}

const negated = (text) => (text.startsWith("-") ? text.slice(1) : `-${text}`);

function drawOwnership() {
  const slices = slicesOf(summary);
  const { top10 } = summary.concentration;
  const middle = summary.holderCount > 10 ? { number: percent(top10), label: "top 10" } : { number: count(summary.holderCount), label: summary.holderCount === 1 ? "holder" : "holders" };
  const label = `Ownership. ${slices.map((slice) => `${slice.name}: ${percent(slice.percentage)}`).join("; ")}.`;
  charts.draw("ownership-chart", label, shape === "treemap" ? charts.treemap(slices) : charts.donut(slices, middle));
  const lines = slices.map(({ name: text, title, percentage, kind }, index) =>
    el("li", null, el(`i.swatch.${kind === "holder" ? `c${index + 1}` : kind}`), el("bdi.name", { title: title ?? text }, text), el("span.share", { title: `${exact(percentage)} %` }, percent(percentage))),
  );
  byId("ownership-legend").replaceChildren(...lines);
  const remainder = trend(summary.unattributed.percentage);
  byId("remainder").textContent = remainder === "up" ? REST : remainder === "down" ? OVER : "";
}

for (const button of document.querySelectorAll("[data-shape]")) {
  button.addEventListener("click", () => {
    shape = button.dataset.shape;
    for (const each of document.querySelectorAll("[data-shape]")) each.setAttribute("aria-pressed", String(each === button));
    if (charts) drawOwnership();
  });
}

// --- rows

function columns() {
  const { token, currency } = summary;
  const unit = token.decimals === null ? "base units" : isolated(token.symbol);
  return [
    { key: "rank", label: "#", sort: "rank", number: true, cell: (row) => count(row.rank) },
    { key: "holder", label: "Holder", sort: "wallet", cell: holder },
    { key: "quantity", label: `Quantity (${unit})`, sort: "quantity", descending: true, number: true, cell: (row) => figure(amount(row.quantity, token), { title: exact(row.quantity) }) },
    { key: "share", label: "Share of supply", sort: "percentage", descending: true, number: true, cell: share },
    {
      key: "value",
      label: `Value (${currency})`,
      sort: "value",
      descending: true,
      number: true,
      cell: (row) => figure(amount(row.value, { currency }), { title: exact(row.value, { currency }), missing: row.value === null ? reasonOf(row.valueStatus) : null }),
    },
    { key: "change", label: "30-day change", number: true, hint: "Quantity now less that of 30 days before", cell: change },
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
  bar.firstChild.style.width = `${Math.min(100, Math.max(0, (toPixels(row.percentage) / widest()) * 100))}%`;
  return el("span.barred", null, bar, figure(percent(row.percentage), { title: `${exact(row.percentage)} %` }));
}

// Bars compare holders with the largest one: of the whole supply, most would be too small to see.
const widest = () => toPixels(summary.largest[0]?.percentage ?? null) || 100;

function change(row) {
  if (row.change30d === null) return figure("", { missing: reasonOf(row.change30dStatus) });
  return figure(compact(row.change30d, { signed: true }), { title: exact(row.change30d, { signed: true }), className: trend(row.change30d) });
}

function check({ reconciliation, checkedBlockNumber }) {
  const { word, meaning } = checkOf(reconciliation);
  const block = checkedBlockNumber === null ? "Never compared with the chain." : `Last compared at block ${count(checkedBlockNumber)}.`;
  return el(`span.badge.${reconciliation.toLowerCase()}`, { title: `${meaning}\n${block}` }, word);
}

page.run();
