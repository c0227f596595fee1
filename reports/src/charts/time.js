/** Axis of days; uncollected days are bands, not zeros. */

import { DAY_MS } from "../days.js";
import { axisDay, day } from "../format.js";
import { axis } from "./base.js";

/**
 * @param {Record<string, any>} colours
 * @param {number} from milliseconds
 * @param {number} to milliseconds
 * @param {object} [more]
 */
export function timeAxis(colours, from, to, more = {}) {
  return axis(colours, {
    type: "time",
    min: from,
    max: to,
    minInterval: DAY_MS,
    axisLine: { show: true, lineStyle: { color: colours.line } },
    axisLabel: { formatter: (value, index) => axisDay(value, index) },
    axisPointer: { label: { formatter: ({ value }) => day(value) } },
    ...more,
  });
}

/**
 * Grey bands behind a chart.
 * @param {[number, number][]} ranges
 * @param {Record<string, any>} colours
 */
export const bands = (ranges, colours) => ({
  silent: true,
  itemStyle: { color: colours.gap },
  data: ranges.map(([from, to]) => [{ xAxis: from }, { xAxis: to + DAY_MS }]),
});
