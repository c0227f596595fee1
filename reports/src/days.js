/** UTC days and sums by day: pure arithmetic for the charts. */

import { sum } from "./decimal.js";
import { ACTIVITY_TYPES } from "./status.js";

export const DAY_MS = 86_400_000;

const WEEKS_FROM_DAYS = 92; // more bars cannot be distinguished
const MONDAY = 4 * DAY_MS; // 1 January 1970 was a Thursday

/** @param {string} date day @returns {number} its start, milliseconds */
export const startOf = (date) => Date.parse(`${date}T00:00:00Z`);

/** @param {{at: string}} point @returns {string} the day of its moment */
export const dayOf = ({ at }) => at.slice(0, 10);

/** @param {number} at milliseconds @returns {number} the start of its day */
export const wholeDay = (at) => at - (at % DAY_MS);

/** @param {number} at milliseconds @returns {string} its day, such as 2026-01-31 */
export const isoDay = (at) => new Date(at).toISOString().slice(0, 10);

/**
 * Find stretches of days that fulfil a condition.
 *
 * @template {{at: string}} T
 * @param {T[]} points one per day or interval; an interval counts as its last day.
 * @param {(point: T) => boolean} holds
 * @returns {[number, number][]} first and last day of each stretch, milliseconds
 */
export function stretches(points, holds) {
  const found = [];
  let [open, next] = [null, null];
  for (const point of points) {
    const at = startOf(dayOf(point));
    if (!holds(point)) open = null;
    else if (open) open[1] = at;
    else found.push((open = [next ?? at, at]));
    next = at + DAY_MS;
  }
  return found;
}

/**
 * @typedef {object} Bucket
 * @property {number} start
 * @property {string} type
 * @property {number} count
 * @property {string | null} value
 * @property {string | null} valueIn its inflows.
 * @property {string | null} valueOut its outflows.
 * @property {boolean} complete
 */

/**
 * Sum days by the grain of a range: weeks from Monday if there are too many days.
 * @param {object[]} timeline by day and type, from the summary
 * @param {[number, number]} range milliseconds
 * @returns {{grain: "day" | "week", buckets: Bucket[]}} oldest first
 */
export function bucketsOf(timeline, [from, to]) {
  const grain = to - from > WEEKS_FROM_DAYS * DAY_MS ? "week" : "day";
  const buckets = new Map();
  for (const { date, type, count, valueComplete, ...values } of timeline) {
    const at = startOf(date);
    const start = grain === "day" ? at : at - ((at - MONDAY) % (7 * DAY_MS));
    const key = `${start} ${type}`;
    const bucket = buckets.get(key) ?? { start, type, count: 0, complete: true, parts: [] };
    bucket.count += count;
    if (values.value !== null) bucket.parts.push(values);
    bucket.complete &&= valueComplete;
    buckets.set(key, bucket);
  }
  const summed = [...buckets.values()].map(({ parts, ...bucket }) => {
    const total = (name) => (parts.length ? sum(parts.map((part) => part[name])) : null);
    return { ...bucket, value: total("value"), valueIn: total("valueIn"), valueOut: total("valueOut") };
  });
  return { grain, buckets: summed.sort((one, other) => one.start - other.start) };
}

/**
 * Widen a range to full weeks of its bars; the first and last week may be cut.
 * @param {[number, number]} range milliseconds
 * @param {{grain: "day" | "week", buckets: Bucket[]}} data
 * @returns {[number, number]}
 */
export function wholeBuckets([from, to], { grain, buckets }) {
  if (grain === "day" || !buckets.length) return [from, to];
  return [Math.min(from, buckets[0].start), Math.max(to, buckets.at(-1).start + 7 * DAY_MS)];
}

/** @param {{type: string}[]} timeline @returns {string[]} its types, in stacking order */
export const typesOf = (timeline) => ACTIVITY_TYPES.filter((type) => timeline.some((point) => point.type === type));

/**
 * True if an axis of values starts at zero with a filled area, unless this would flatten the line.
 * @param {number[]} values
 */
export const startsAtZero = (values) => Math.min(...values) < 0.6 * Math.max(...values);

const FEWEST_DAYS = 3;

/** @param {[number, number]} range milliseconds @returns {[number, number]} a short range gets a day on either side */
export const around = ([from, to]) => (to - from < FEWEST_DAYS * DAY_MS ? [from - DAY_MS, to + DAY_MS] : [from, to]);

/** @param {{value: string | null, valueStatus: string}} point @returns {boolean} the day is not collected */
export const isGap = ({ value, valueStatus }) => value === null && valueStatus === "NotCovered";

/** @param {{value: string | null, valueComplete: boolean}} point @returns {boolean} some positions are left out */
export const isPartial = ({ value, valueComplete }) => value !== null && !valueComplete;
