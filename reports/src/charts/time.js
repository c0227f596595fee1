/** Days on an axis, with what is not collected as bands instead of zeros. */

import { axisDay, day } from "../format.js";
import { axis } from "./base.js";

export const DAY_MS = 86_400_000;

/** @param {string} date day @returns {number} its start, milliseconds */
export const startOf = (date) => Date.parse(`${date}T00:00:00Z`);

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
    axisLabel: { formatter: (value) => axisDay(value) },
    axisPointer: { label: { formatter: ({ value }) => day(value) } },
    ...more,
  });
}

/**
 * Stretches of days that fulfil a condition.
 * @template T
 * @param {T[]} points one per day
 * @param {(point: T) => boolean} holds
 * @returns {[number, number][]} first and last milliseconds of each stretch
 */
export function stretches(points, holds) {
  const found = [];
  let open = null;
  points.forEach((point, index) => {
    const at = startOf(point.date);
    if (holds(point)) open = [open?.[0] ?? at, at];
    if (open && (!holds(point) || index === points.length - 1)) {
      found.push(open);
      open = null;
    }
  });
  return found;
}

/**
 * Bands of grey behind a chart.
 * @param {[number, number][]} ranges
 * @param {Record<string, any>} colours
 */
export const bands = (ranges, colours) => ({
  silent: true,
  itemStyle: { color: colours.gap },
  data: ranges.map(([from, to]) => [{ xAxis: from }, { xAxis: to + DAY_MS }]),
});
