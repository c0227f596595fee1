/**
 * Stacked activities by type and by day or week: their number, or their value with inflows above zero and outflows
 * below.
 */

import "echarts/lib/chart/bar.js";

import { DAY_MS, typesOf } from "../days.js";
import { toPixels } from "../decimal.js";
import { amount, count, day, tick } from "../format.js";
import { ACTIVITY_TYPES, typeOf } from "../status.js";
import { tooltip, valueAxis } from "./base.js";
import { timeAxis } from "./time.js";
import { zoomGrid, zoomSlider } from "./value-history.js";

/** @param {string} type @returns {number} its index in the series' colours */
export const colourOf = (type) => ACTIVITY_TYPES.indexOf(type);

/**
 * @param {{grain: "day" | "week", buckets: import("../days.js").Bucket[]}} data
 * @param {[number, number]} range milliseconds
 * @param {"count" | "value"} measure
 * @param {string} currency
 */
export const timeline =
  ({ grain, buckets }, range, measure, currency) =>
  (colours) => {
    const middle = (grain === "week" ? 7 * DAY_MS : DAY_MS) / 2;
    const starts = [...new Set(buckets.map(({ start }) => start))];
    const of = new Map(buckets.map((bucket) => [`${bucket.start} ${bucket.type}`, bucket]));
    return {
      grid: zoomGrid(colours, range),
      tooltip: tooltip(colours, {
        trigger: "axis",
        axisPointer: { type: "line", lineStyle: { color: colours.muted } },
        formatter: ([
          {
            value: [at],
          },
        ]) =>
          described(
            buckets.filter(({ start }) => start === at - middle),
            grain,
            currency,
          ),
      }),
      xAxis: timeAxis(colours, ...range),
      yAxis: valueAxis(colours, {
        min: measure === "count" ? 0 : undefined,
        minInterval: measure === "count" ? 1 : undefined,
        axisLabel: { formatter: (value) => tick(value, measure === "count" ? {} : { currency }) },
      }),
      dataZoom: [zoomSlider(colours, range)],
      series: typesOf(buckets).flatMap((type) =>
        HEIGHTS[measure].map((height) => ({
          type: "bar",
          name: typeOf(type),
          stack: "all",
          barMaxWidth: 18,
          itemStyle: { color: colours.series[colourOf(type)] },
          emphasis: { disabled: true },
          data: starts.map((start) => {
            const bucket = of.get(`${start} ${type}`);
            return [start + middle, bucket ? height(bucket) : 0];
          }),
        })),
      ),
    };
  };

// A transfer of a wallet to itself has no direction and no height.
const HEIGHTS = {
  count: [({ count: number }) => number],
  value: [({ valueIn }) => toPixels(valueIn) ?? 0, ({ valueOut }) => -(toPixels(valueOut) ?? 0)],
};

function described(buckets, grain, currency) {
  const head = `${grain === "week" ? "Week of " : ""}${day(buckets[0].start)}`;
  const lines = buckets.map(({ type, count: number, value, complete }) => {
    const worth = value === null ? "no value" : `${amount(value, { currency })}${complete ? "" : " (partly priced)"}`;
    return `${typeOf(type)}: ${count(number)} · ${worth}`;
  });
  return [head, ...lines].join("\n");
}
