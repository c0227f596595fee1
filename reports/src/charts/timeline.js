/** Activities by type, stacked, by day or by week: how many, or what they were worth. */

import "echarts/lib/chart/bar.js";

import { sum, toPixels } from "../decimal.js";
import { amount, count, day, tick } from "../format.js";
import { ACTIVITY_TYPES, typeOf } from "../status.js";
import { tooltip, valueAxis } from "./base.js";
import { DAY_MS, startOf, timeAxis } from "./time.js";
import { zoomSlider } from "./value-history.js";

const WEEKS_FROM_DAYS = 92; // more bars than that are no longer told apart
const MONDAY = 4 * DAY_MS; // 1 January 1970 was a Thursday

/**
 * @typedef {{start: number, type: string, count: number, value: string | null, complete: boolean}} Bucket
 */

/**
 * Sum days to the grain that a range is drawn in.
 * @param {{date: string, type: string, count: number, value: string | null, valueComplete: boolean}[]} timeline
 * @param {[number, number]} range milliseconds
 * @returns {{grain: "day" | "week", buckets: Bucket[]}} oldest first
 */
export function bucketsOf(timeline, [from, to]) {
  const grain = to - from > WEEKS_FROM_DAYS * DAY_MS ? "week" : "day";
  const buckets = new Map();
  for (const { date, type, count: number, value, valueComplete } of timeline) {
    const at = startOf(date);
    const start = grain === "day" ? at : at - ((at - MONDAY) % (7 * DAY_MS));
    const key = `${start} ${type}`;
    const bucket = buckets.get(key) ?? { start, type, count: 0, values: [], complete: true };
    bucket.count += number;
    if (value !== null) bucket.values.push(value);
    bucket.complete &&= valueComplete;
    buckets.set(key, bucket);
  }
  const summed = [...buckets.values()].map(({ values, ...bucket }) => ({ ...bucket, value: values.length ? sum(values) : null }));
  return { grain, buckets: summed.sort((one, other) => one.start - other.start) };
}

/** The types that a timeline has, in stacking order; their colours go by it. @param {{type: string}[]} timeline */
export const typesOf = (timeline) => ACTIVITY_TYPES.filter((type) => timeline.some((point) => point.type === type));

/** @param {string} type @returns {number} its place among the series' colours, from 0 */
export const colourOf = (type) => ACTIVITY_TYPES.indexOf(type);

/**
 * @param {{grain: "day" | "week", buckets: Bucket[]}} data
 * @param {[number, number]} range milliseconds
 * @param {"count" | "value"} measure
 * @param {string} currency
 */
export const timeline = ({ grain, buckets }, range, measure, currency) => (colours) => {
  const middle = (grain === "week" ? 7 * DAY_MS : DAY_MS) / 2;
  const starts = [...new Set(buckets.map(({ start }) => start))];
  const of = new Map(buckets.map((bucket) => [`${bucket.start} ${bucket.type}`, bucket]));
  return {
    grid: { left: 60, right: 16, top: 14, bottom: 76 },
    tooltip: tooltip(colours, {
      trigger: "axis",
      axisPointer: { type: "line", lineStyle: { color: colours.muted } },
      formatter: ([{ value: [at] }]) => described(buckets.filter(({ start }) => start === at - middle), grain, currency),
    }),
    xAxis: timeAxis(colours, ...range),
    yAxis: valueAxis(colours, {
      min: 0,
      minInterval: measure === "count" ? 1 : undefined,
      axisLabel: { formatter: (value) => tick(value, measure === "count" ? {} : { currency }) },
    }),
    dataZoom: [zoomSlider(colours, range)],
    series: typesOf(buckets).map((type) => ({
      type: "bar",
      name: typeOf(type),
      stack: "all",
      barMaxWidth: 18,
      itemStyle: { color: colours.series[colourOf(type)] },
      emphasis: { disabled: true },
      data: starts.map((start) => {
        const bucket = of.get(`${start} ${type}`);
        return [start + middle, bucket ? (measure === "count" ? bucket.count : (toPixels(bucket.value) ?? 0)) : 0];
      }),
    })),
  };
};

function described(buckets, grain, currency) {
  const head = `${grain === "week" ? "Week of " : ""}${day(buckets[0].start)}`;
  const lines = buckets.map(({ type, count: number, value, complete }) => {
    const worth = value === null ? "no price" : `${amount(value, { currency })}${complete ? "" : " (partly priced)"}`;
    return `${typeOf(type)}: ${count(number)} · ${worth}`;
  });
  return [head, ...lines].join("\n");
}
