/**
 * The charts of a wallet over time. A chosen range applies to both charts and the rows; before a choice, each chart
 * starts at its first data.
 */

import {
  DAY_MS,
  around,
  bucketsOf,
  dayOf,
  isGap,
  isPartial,
  isoDay,
  startOf,
  typesOf,
  wholeBuckets,
  wholeDay,
} from "../days.js";
import { byId, el, press, show } from "../dom.js";
import { amount, count, day, exact, plural, shortened } from "../format.js";
import { reasonOf, typeOf } from "../status.js";

const ZOOM_DELAY_MS = 200;
const MONTHS = { "1M": 1, "3M": 3, "6M": 6, "1Y": 12 };

let summary = null;
let charts = null;
let narrow = null;
let measure = "count";
let folded = true; // fees are not counted next to other activities of their transaction
let zoom = null; // [from, to) in milliseconds; null: everything
let zoomTimer = 0;

/**
 * Draw, or redraw with the current zoom.
 *
 * @param {any} report the summary.
 * @param {any} drawing the charts' module.
 * @param {(range: {from: string | null, to: string | null}) => void} narrowed called with the days, `to` excluded
 */
export function drawSeries(report, drawing, narrowed) {
  [summary, charts, narrow] = [report, drawing, narrowed];
  const { valueHistory, timeline } = summary;
  const priced = valueHistory.some(({ value }) => value !== null);
  show("value", priced, drawValues);
  byId("value-none").textContent = valueHistory.length
    ? `No value: ${reasonOf(valueHistory.at(-1).valueStatus).toLowerCase()}.`
    : "No day is collected yet.";
  show("timeline", timeline.length > 0, drawTimeline);
  byId("ranges").hidden = !priced && !timeline.length;
  if (!byId("ranges").hidden) markRange();
}

// From the first value or activity to the end of the last day.
function extent() {
  const days = [...valued().map(dayOf), ...summary.timeline.map(({ date }) => date)].map(startOf);
  return [Math.min(...days), Math.max(...days) + DAY_MS];
}

const valued = () => {
  const first = summary.valueHistory.findIndex(({ value }) => value !== null);
  return first < 0 ? [] : summary.valueHistory.slice(first);
};

// The axis of a chart starts at its first day, or at the start of the chosen range.
function axisFrom(first) {
  const [, last] = extent();
  return around([Math.min(startOf(first), zoom?.[0] ?? Infinity), last]);
}

function drawValues() {
  const { currency } = summary;
  const points = valued();
  const range = axisFrom(dayOf(points[0]));
  const last = points.findLast(({ value }) => value !== null);
  const days = `${day(points[0].at)} to ${day(points.at(-1).at)}`;
  const text = `Value by day in ${currency}, ${days}; ${amount(last.value, { currency })} on ${day(last.at)}.`;
  const chart = charts.draw("value-chart", text, charts.valueHistory(points, range, currency));
  listenToZoom(chart, "value-chart");
  const partial = points.filter(isPartial);
  byId("value-whole").hidden = !points.some((point) => point.value !== null && point.valueComplete);
  byId("value-partial").hidden = partial.length === 0;
  byId("value-gap").hidden = !points.some(isGap);
  const unpriced = [...new Set(partial.flatMap((point) => point.unpriced))].map((each) => shortened(each));
  byId("value-unpriced").textContent = unpriced.length
    ? `Without a price on some days, and left out there: ${unpriced.join(", ")}.`
    : "";
  charts.dataTable("value-data", `Value by day in ${currency}`, ["Day (UTC)", `Value (${currency})`, "Complete"], () =>
    summary.valueHistory.map((point) => [
      day(point.at),
      point.value === null ? reasonOf(point.valueStatus) : exact(point.value, { currency }),
      point.value === null ? "" : point.valueComplete ? "yes" : `without ${point.unpriced.join(", ")}`,
    ]),
  );
}

function drawTimeline() {
  const { currency } = summary;
  const timeline = counted(summary.timeline);
  const days = axisFrom((timeline[0] ?? summary.timeline[0]).date);
  const data = bucketsOf(timeline, days);
  const range = wholeBuckets(days, data);
  byId("timeline-grain").textContent =
    `Per ${data.grain}, by type${measure === "value" ? `, ${currency} then: in above zero, out below` : ""}`;
  const chart = charts.draw(
    "timeline-chart",
    `Activities per ${data.grain} by type; ${plural(activitiesOf(summary), "activity", "activities")} in all.`,
    charts.timeline(data, range, measure, currency),
  );
  listenToZoom(chart, "timeline-chart");
  byId("timeline-legend").replaceChildren(
    ...typesOf(timeline).map((type) => el("li", null, el(`i.swatch.c${charts.colourOf(type) + 1}`), typeOf(type))),
  );
  const partly = measure === "value" && timeline.some(({ valueComplete }) => !valueComplete);
  byId("timeline-unpriced").textContent = partly ? "Activities without a price are left out of the values." : "";
  charts.dataTable(
    "timeline-data",
    `Activities per ${data.grain}`,
    [`First day (UTC)`, "Type", "Activities", `Value (${currency})`],
    () =>
      data.buckets.map(({ start, type, count: number, value, complete }) => [
        day(start),
        typeOf(type),
        count(number),
        value === null ? "no value" : `${exact(value, { currency })}${complete ? "" : " (partly priced)"}`,
      ]),
  );
}

// In the chart of values a fee counts by its value, folded or not.
function counted(timeline) {
  if (!folded || measure === "value") return timeline;
  return timeline
    .map((point) => ({ ...point, count: point.count - point.foldedCount }))
    .filter((point) => point.count > 0);
}

press("measure", (chosen) => {
  measure = chosen;
  redrawTimeline();
});

/** @param {boolean} fold true if fees are part of their transaction and not counted */
export const foldFees = (fold) => (folded = fold);

/** @param {{activityCount: number, foldedFeeCount: number}} report @returns {number} count with the current folding */
export const activitiesOf = ({ activityCount, foldedFeeCount }) => activityCount - (folded ? foldedFeeCount : 0);

/** Redraw the activities if they have been drawn. */
export function redrawTimeline() {
  if (charts && summary.timeline.length) drawTimeline();
}

// --- zoom: both charts and the rows show one range

const listening = new Map();
const DRAWN_BY = { "value-chart": drawValues, "timeline-chart": drawTimeline };

function listenToZoom(chart, id) {
  if (listening.has(id)) return;
  listening.set(id, chart);
  chart.on("datazoom", ({ quiet }) => {
    if (quiet) return;
    const { startValue, endValue } = chart.option.dataZoom[0];
    zoomTo([startValue, endValue], id);
  });
}

function zoomTo(asked, from = null) {
  const [first, last] = extent();
  const [start, end] = asked ?? [first, last];
  zoom =
    start <= first && end >= last
      ? null
      : [wholeDay(Math.max(start, first)), wholeDay(Math.min(end, last) + DAY_MS - 1)];
  // The last week's bar is placed after the last day.
  const endValue = end >= last ? last + 7 * DAY_MS : end;
  const values = zoom ? { startValue: Math.max(start, first), endValue } : { start: 0, end: 100 };
  for (const [id, chart] of listening) {
    if (id === from) continue;
    DRAWN_BY[id](); // its axis may have a new start
    chart.act({ type: "dataZoom", ...values, quiet: true }); // quiet: otherwise each chart would react to the other
  }
  markRange();
  clearTimeout(zoomTimer);
  const range = zoom ? { from: isoDay(zoom[0]), to: isoDay(zoom[1]) } : { from: null, to: null };
  zoomTimer = setTimeout(() => narrow(range), ZOOM_DELAY_MS);
}

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
  button.addEventListener("click", () =>
    zoomTo(MONTHS[button.dataset.range] ? rangeOf(MONTHS[button.dataset.range]) : null),
  );
}
byId("chip-clear").addEventListener("click", () => {
  zoomTo(null);
  byId("search").focus();
});
