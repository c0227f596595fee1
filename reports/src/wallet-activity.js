/** The wallet report: what a wallet is worth, how that came about, what it holds, and every movement. */

import { share, sum, toPixels } from "./decimal.js";
import { byId, copyable, el, figure, fill, name } from "./dom.js";
import { amount, compact, count, dateTime, day, exact, instant, percent, plural, shortened, timeOfDay, trend } from "./format.js";
import { Page } from "./page.js";
import { checkOf, reasonOf, typeOf } from "./status.js";
import { drawHead, drawKpis, drawStrip, item, kpi, momentOf, whyEmpty } from "./strip.js";
import { Table, firstPage } from "./table.js";

const PATH = "/embed/data/wallet-activity";
const SORT = "-date";
const DAY_MS = 86_400_000;
const ZOOM_DELAY_MS = 200;
const MONTHS = { "1M": 1, "3M": 3, "6M": 6, "1Y": 12 };
const SHOWN_BALANCES = 8;
const SHOWN_SLICES = 7;

// The charts are most of the page's weight: they arrive while the numbers are asked for.
const chartsReady = import("./charts/wallet-charts.js");

let summary = null;
let table = null;
let charts = null;
let measure = "count";
let zoom = null; // [from, to) in milliseconds; null: everything
let zoomTimer = 0;
let allBalances = false;

const page = new Page(async (session) => {
  const first = table ? null : firstPage(session, PATH, SORT);
  [summary] = await Promise.all([session.get(`${PATH}/summary`), first]);
  document.title = `${summary.wallet.name ?? shortened(summary.wallet.ledgerId)} wallet activity`;
  table ??= new Table({
    columns: columns(),
    path: PATH,
    sort: SORT,
    what: ["activity", "activities"],
    filters: ["filter-type", "filter-token", "filter-direction"],
    onFailure: (failure) => page.fail(failure),
  });
  const collected = summary.asOf.blockNumber !== null;
  drawTop(collected);
  for (const part of document.querySelectorAll("[data-needs=data]")) part.hidden = !collected;
  byId("nothing").hidden = collected;
  if (!collected) return "empty";
  byId("content").hidden = false;
  fillFilters();
  drawBalances();
  const [drawing] = await Promise.all([chartsReady, table.start(session, summary.dataVersion, await first)]);
  charts = drawing;
  drawCharts();
  return "ready";
});

const label = ({ symbol, ledgerId }) => symbol ?? shortened(ledgerId);

function drawTop(collected) {
  const { wallet, asOf, isCurrent, range } = summary;
  const described = range.from && range.to ? ` · ${day(range.from)} – ${day(new Date(Date.parse(range.to) - 1))}` : "";
  drawHead({
    title: wallet.name === null ? [el("span", null, "Wallet activity")] : [name(wallet.name)],
    subtitle: [`Wallet · ${wallet.networkDisplayName} · `, copyable(wallet.ledgerId, shortened(wallet.ledgerId), "address"), described],
    moment: momentOf(asOf, isCurrent),
  });
  drawStrip({ ...summary, price: collected ? holdings() : null });
  if (collected) drawKpis(...tiles());
  else fill("nothing", el("h2", null, "No activity to show yet"), el("p", null, whyEmpty(summary.coverage)));
}

function holdings() {
  const words = summary.holdingsComplete ? "Complete" : "May be incomplete";
  const why = summary.holdingsComplete ? "since the wallet's first block" : "history does not reach the wallet's first block";
  return item("price", "Holdings", el(`span.figure${summary.holdingsComplete ? "" : ".warn"}`, null, words), el("span.sub", null, why));
}

function tiles() {
  const { currency, totalValue, totalValueStatus, change24h, change24hStatus, flows, activityCount, counterpartyCount, lastActivityAt } = summary;
  const money = (text, more = {}) => ({ title: exact(text, { currency, ...more }) });
  const change =
    change24h === null
      ? `24 h: ${reasonOf(change24hStatus).toLowerCase()}`
      : el("span", null, figure(percent(change24h, { signed: true }), { title: `${exact(change24h)} %`, className: trend(change24h) }), " in 24 h");
  const inOut = flows.net === null ? null : `in ${compact(flows.in, { currency })} · out ${compact(flows.out, { currency })}`;
  return [
    kpi("Wallet value", figure(compact(totalValue, { currency }), { ...money(totalValue), missing: totalValue === null ? reasonOf(totalValueStatus) : null }), change),
    kpi(
      flows.isComplete ? "Net flow" : "Net flow (incomplete)",
      figure(compact(flows.net, { currency, signed: true }), { ...money(flows.net, { signed: true }), className: trend(flows.net), missing: flows.net === null ? reasonOf(flows.status) : null }),
      inOut,
    ),
    kpi("Activities", figure(count(activityCount)), summary.range.from && `since ${day(summary.range.from)}`),
    kpi("Counterparties", figure(count(counterpartyCount)), "different addresses"),
    kpi("Last activity", figure(lastActivityAt ? day(lastActivityAt) : "", { title: instant(lastActivityAt), missing: lastActivityAt ? null : "None" }), lastActivityAt && timeOfDay(lastActivityAt)),
  ];
}

// --- charts

// Whole days around all that is drawn, so that both charts have one axis and one zoom.
function extent() {
  const dates = [...summary.valueHistory, ...summary.timeline].map(({ date }) => Date.parse(`${date}T00:00:00Z`));
  return [Math.min(...dates), Math.max(...dates) + DAY_MS];
}

function drawCharts() {
  const { valueHistory, timeline } = summary;
  const priced = valueHistory.some(({ value }) => value !== null);
  show("value", priced, drawValues);
  byId("value-none").textContent = valueHistory.length ? `No value: ${reasonOf(valueHistory.at(-1).valueStatus).toLowerCase()}.` : "No day is collected yet.";
  show("timeline", timeline.length > 0, drawTimeline);
  byId("ranges").hidden = !priced && !timeline.length;
  markRange();
}

function show(part, there, draw) {
  byId(`${part}-chart`).hidden = !there;
  byId(`${part}-none`).hidden = there;
  byId(`${part}-data`).hidden = !there;
  if (there) draw();
}

function drawValues() {
  const { valueHistory: points, currency } = summary;
  const last = points.findLast(({ value }) => value !== null);
  const text = `Value by day in ${currency}, ${day(points[0].date)} to ${day(points.at(-1).date)}; ${amount(last.value, { currency })} on ${day(last.date)}.`;
  const chart = charts.draw("value-chart", text, charts.valueHistory(points, extent(), currency));
  listenToZoom(chart, "value-chart");
  const partial = points.filter(charts.isPartial);
  byId("value-partial").hidden = partial.length === 0;
  byId("value-gap").hidden = !points.some(charts.isGap);
  const unpriced = [...new Set(partial.flatMap((point) => point.unpriced))].map((each) => shortened(each));
  byId("value-unpriced").textContent = unpriced.length ? `Without a price on some days, and left out there: ${unpriced.join(", ")}.` : "";
  charts.dataTable("value-data", `Value by day in ${currency}`, ["Day (UTC)", `Value (${currency})`, "Complete"], () =>
    points.map((point) => [
      day(point.date),
      point.value === null ? reasonOf(point.valueStatus) : exact(point.value, { currency }),
      point.value === null ? "" : point.valueComplete ? "yes" : `without ${point.unpriced.join(", ")}`,
    ]),
  );
}

function drawTimeline() {
  const { timeline, currency, activityCount } = summary;
  const data = charts.bucketsOf(timeline, extent());
  byId("timeline-grain").textContent = `Per ${data.grain}, by type${measure === "value" ? `, ${currency} at the prices of the time` : ""}`;
  const chart = charts.draw("timeline-chart", `Activities per ${data.grain} by type; ${plural(activityCount, "activity", "activities")} in all.`, charts.timeline(data, extent(), measure, currency));
  listenToZoom(chart, "timeline-chart");
  byId("timeline-legend").replaceChildren(
    ...charts.typesOf(timeline).map((type) => el("li", null, el(`i.swatch.c${charts.colourOf(type) + 1}`), typeOf(type))),
  );
  const partly = measure === "value" && timeline.some(({ valueComplete }) => !valueComplete);
  byId("timeline-unpriced").textContent = partly ? "Activities without a price are left out of the values." : "";
  charts.dataTable("timeline-data", `Activities per ${data.grain}`, [`First day (UTC)`, "Type", "Activities", `Value (${currency})`], () =>
    data.buckets.map(({ start, type, count: number, value, complete }) => [
      day(start),
      typeOf(type),
      count(number),
      value === null ? "no price" : `${exact(value, { currency })}${complete ? "" : " (partly priced)"}`,
    ]),
  );
}

for (const button of document.querySelectorAll("[data-measure]")) {
  button.addEventListener("click", () => {
    measure = button.dataset.measure;
    for (const each of document.querySelectorAll("[data-measure]")) each.setAttribute("aria-pressed", String(each === button));
    if (charts && summary.timeline.length) drawTimeline();
  });
}

// --- zoom: both charts and the rows show one range

const listening = new Map();

function listenToZoom(chart, id) {
  if (listening.has(id)) return;
  listening.set(id, chart);
  chart.on("datazoom", ({ quiet }) => {
    if (quiet) return;
    const { startValue, endValue } = chart.option.dataZoom[0];
    zoomTo([startValue, endValue], id);
  });
}

function zoomTo(range, from = null) {
  const [first, last] = extent();
  const [start, end] = range ?? [first, last];
  zoom = start <= first && end >= last ? null : [wholeDay(Math.max(start, first)), wholeDay(Math.min(end, last) + DAY_MS - 1)];
  for (const [id, chart] of listening) {
    if (id !== from) chart.act({ type: "dataZoom", startValue: Math.max(start, first), endValue: Math.min(end, last), quiet: true });
  }
  markRange();
  clearTimeout(zoomTimer);
  zoomTimer = setTimeout(() => table.narrow(zoom ? { from: isoDay(zoom[0]), to: isoDay(zoom[1]) } : { from: null, to: null }), ZOOM_DELAY_MS);
}

const wholeDay = (at) => at - (at % DAY_MS);
const isoDay = (at) => new Date(at).toISOString().slice(0, 10);

function rangeOf(months) {
  const [, last] = extent();
  const start = new Date(last);
  start.setUTCMonth(start.getUTCMonth() - months);
  return [start.getTime(), last];
}

function markRange() {
  for (const button of document.querySelectorAll("[data-range]")) {
    const months = MONTHS[button.dataset.range];
    const [start, end] = months ? rangeOf(months) : [null, null];
    const pressed = months ? zoom !== null && zoom[0] === wholeDay(start) && zoom[1] === end : zoom === null;
    button.setAttribute("aria-pressed", String(pressed));
    button.disabled = Boolean(months) && start <= extent()[0];
  }
  byId("chip").hidden = zoom === null;
  if (zoom) byId("chip-text").textContent = `${day(zoom[0])} – ${day(zoom[1] - DAY_MS)}`;
}

for (const button of document.querySelectorAll("[data-range]")) {
  button.addEventListener("click", () => zoomTo(MONTHS[button.dataset.range] ? rangeOf(MONTHS[button.dataset.range]) : null));
}
byId("chip-clear").addEventListener("click", () => {
  zoomTo(null);
  byId("search").focus();
});

// --- holdings

function drawBalances() {
  const { balances, currency, unpriced, totalValue } = summary;
  const byValue = [...balances].sort((one, other) => (toPixels(other.value) ?? -1) - (toPixels(one.value) ?? -1));
  const shown = allBalances ? byValue : byValue.slice(0, SHOWN_BALANCES);
  byId("balances-body").replaceChildren(...shown.map((position) => balanceRow(position, currency)));
  byId("balances-none").hidden = balances.length > 0;
  byId("balances-more").hidden = allBalances || balances.length <= SHOWN_BALANCES;
  byId("balances-more").textContent = `Show all ${plural(balances.length, "position")}`;
  byId("balances-note").textContent = unpriced.length ? `Not in the wallet's value for want of a price: ${unpriced.map((each) => shortened(each)).join(", ")}.` : "";
  const slices = totalValue === null ? [] : slicesOf(byValue, totalValue);
  byId("allocation").hidden = slices.length === 0;
  if (slices.length) chartsReady.then((drawing) => drawAllocation(drawing, slices, totalValue, currency));
}

byId("balances-more").addEventListener("click", () => {
  allBalances = true;
  drawBalances();
});

function balanceRow({ token, quantity, value, valueStatus, reconciliation }, currency) {
  const { word, meaning } = checkOf(reconciliation);
  const asset = token.ledgerId === "native" ? el("span.sub", null, "native") : copyable(token.ledgerId, shortened(token.ledgerId), "contract address");
  return el(
    "tr",
    null,
    el("td", null, token.symbol === null ? asset : el("span.named", null, name(token.symbol), asset)),
    el("td.right", null, figure(amount(quantity), { title: exact(quantity) })),
    el("td.right", null, figure(amount(value, { currency }), { title: exact(value, { currency }), missing: value === null ? reasonOf(valueStatus) : null })),
    el("td", null, el(`span.badge.${reconciliation.toLowerCase()}`, { title: meaning }, word)),
  );
}

function slicesOf(byValue, totalValue) {
  const positive = byValue.filter(({ value }) => value !== null && trend(value) === "up");
  if (!positive.length || trend(totalValue) !== "up") return [];
  const slice = (text, value, kind, title) => ({ name: text, title, value, kind, pixels: toPixels(value), percentage: share(value, totalValue) });
  const first = positive.slice(0, SHOWN_SLICES).map(({ token, value }) => slice(label(token), value, "holder", token.ledgerId));
  const others = positive.slice(SHOWN_SLICES);
  return others.length ? [...first, slice(plural(others.length, "other"), sum(others.map(({ value }) => value)), "others")] : first;
}

function drawAllocation(drawing, slices, totalValue, currency) {
  const text = `Allocation. ${slices.map((slice) => `${slice.name}: ${percent(slice.percentage)}`).join("; ")}.`;
  drawing.draw("allocation-chart", text, drawing.donut(slices, { number: compact(totalValue, { currency }), label: "in priced assets" }));
  byId("allocation-legend").replaceChildren(
    ...slices.map(({ name: asset, title, percentage, kind }, index) =>
      el("li", null, el(`i.swatch.${kind === "holder" ? `c${index + 1}` : kind}`), el("bdi.name", { title }, asset), el("span.share", null, percent(percentage))),
    ),
  );
}

// --- rows

function fillFilters() {
  const { types, tokens } = summary;
  options("filter-type", "All types", types.map((type) => [type, typeOf(type)]));
  options("filter-token", "All tokens", tokens.map((token) => [token.ledgerId, label(token)]));
}

function options(id, all, pairs) {
  const select = byId(id);
  const kept = select.value;
  select.replaceChildren(el("option", { value: "" }, all), ...pairs.map(([value, text]) => el("option", { value }, text)));
  if (pairs.some(([value]) => value === kept)) select.value = kept;
}

function columns() {
  const { currency } = summary;
  return [
    { key: "time", label: "Time (UTC)", sort: "date", descending: true, cell: (row) => el("time", { datetime: row.date, title: `${instant(row.date, { seconds: true })}\nBlock ${count(row.blockNumber)}, ${row.status.toLowerCase()}` }, dateTime(row.date)) },
    { key: "type", label: "Type", sort: "type", cell: type },
    { key: "token", label: "Token", sort: "token", cell: ({ token }) => el("bdi.name", { title: token.ledgerId }, label(token)) },
    { key: "quantity", label: "Quantity", sort: "quantity", descending: true, number: true, cell: (row) => signed(row, row.amount) },
    {
      key: "value",
      label: `Value (${currency})`,
      sort: "value",
      descending: true,
      number: true,
      cell: (row) => (row.value === null ? figure("", { missing: reasonOf(row.valueStatus) }) : signed(row, row.value, currency)),
    },
    { key: "counterparty", label: "Counterparty", sort: "counterparty", cell: counterparty },
    { key: "transaction", label: "Transaction", cell: ({ transactionHash }) => (transactionHash === null ? el("span.missing", null, "—") : copyable(transactionHash, shortened(transactionHash), "transaction hash")) },
  ];
}

function type({ type: kind, status }) {
  const failed = status === "Failed" && el("span.badge.failed", null, "Failed");
  const tail = status === "Confirmed" && el("span.badge.confirmed", { title: "The network may still replace its block." }, "Confirmed");
  return el("span.types", null, el(`span.badge.type.${kind.toLowerCase()}`, null, typeOf(kind)), failed || tail);
}

// Quantities are unsigned on the wire; the direction gives the sign, and a failed transaction moved nothing.
function signed({ direction, status }, text, currency) {
  const moved = status === "Failed" ? null : { In: "up", Out: "down" }[direction];
  const value = moved === "down" && !text.startsWith("-") ? `-${text}` : text;
  const style = { currency, signed: moved !== null && moved !== undefined };
  const shown = style.signed ? value : text;
  return figure(amount(shown, style), { title: exact(shown, style), className: trend(text) === "flat" ? "" : moved ?? "" });
}

function counterparty({ counterparty: address, counterpartyName }) {
  if (address === null) return el("span.missing", null, "—");
  const button = copyable(address, shortened(address), "address");
  return counterpartyName === null ? button : el("span.named", null, name(counterpartyName), button);
}

page.run();
