import assert from "node:assert/strict";
import { test } from "node:test";

import {
  around,
  bucketsOf,
  dayOf,
  isGap,
  isPartial,
  isoDay,
  startOf,
  startsAtZero,
  stretches,
  typesOf,
  wholeBuckets,
  wholeDay,
} from "../src/days.js";
import { share } from "../src/decimal.js";

const on = (date, type, count, value, valueComplete = true) => {
  const [valueIn, valueOut] = value === null ? [null, null] : ["0", value];
  return { date, type, count, value, valueIn, valueOut, valueComplete };
};

test("long ranges are summed to weeks from Monday, exactly", () => {
  const timeline = [
    on("2026-11-15", "Fee", 1, "1"), // Sunday
    on("2026-11-16", "Fee", 2, "0.1"),
    on("2026-11-22", "Fee", 3, "0.2"), // Sunday
    on("2026-11-22", "Mint", 4, null, false),
  ];
  const { grain, buckets } = bucketsOf(timeline, [startOf("2026-01-01"), startOf("2026-12-01")]);
  assert.equal(grain, "week");
  const told = buckets.map(({ start, type, count, value, complete }) => [isoDay(start), type, count, value, complete]);
  assert.deepEqual(told, [
    ["2026-11-09", "Fee", 1, "1", true],
    ["2026-11-16", "Fee", 5, "0.3", true],
    ["2026-11-16", "Mint", 4, null, false],
  ]);
});

test("an axis has room for the whole first and last week", () => {
  const range = [startOf("2026-01-02"), startOf("2026-11-25")]; // Friday, Wednesday
  const data = bucketsOf([on("2026-01-02", "Fee", 1, "1"), on("2026-11-24", "Fee", 1, "1")], range);
  assert.deepEqual(wholeBuckets(range, data).map(isoDay), ["2025-12-29", "2026-11-30"]);
  assert.deepEqual(wholeBuckets(range, { grain: "day", buckets: data.buckets }), range);
});

test("short ranges stay days", () => {
  const { grain, buckets } = bucketsOf(
    [on("2026-11-15", "Fee", 1, "1")],
    [startOf("2026-11-01"), startOf("2026-12-01")],
  );
  assert.equal(grain, "day");
  assert.deepEqual([buckets[0].valueIn, buckets[0].valueOut], ["0", "1"]);
  assert.equal(isoDay(buckets[0].start), "2026-11-15");
});

test("types keep the order in which they are stacked", () => {
  assert.deepEqual(typesOf([{ type: "Fee" }, { type: "TransferOut" }, { type: "TransferIn" }]), [
    "TransferIn",
    "TransferOut",
    "Fee",
  ]);
});

test("stretches begin and end with the days that hold", () => {
  const days = ["2026-01-01", "2026-01-02", "2026-01-03", "2026-01-04", "2026-01-05"].map((date) => ({ at: `${date}T23:59:59.999999Z` }));
  const bad = new Set(["2026-01-01", "2026-01-03", "2026-01-04"]);
  const found = stretches(days, (point) => bad.has(dayOf(point))).map((pair) => pair.map(isoDay));
  assert.deepEqual(found, [
    ["2026-01-01", "2026-01-01"],
    ["2026-01-03", "2026-01-04"],
  ]);
});

test("a stretch of weeks begins after the week before it", () => {
  const weeks = ["2026-01-04", "2026-01-11", "2026-01-18", "2026-01-21"].map((date) => ({ at: `${date}T23:59:59.999999Z` }));
  const found = stretches(weeks, (point) => ["2026-01-11", "2026-01-18"].includes(dayOf(point)));
  assert.deepEqual(
    found.map((pair) => pair.map(isoDay)),
    [["2026-01-05", "2026-01-18"]],
  );
});

test("a day that is not collected is not one without a price", () => {
  assert.equal(isGap({ value: null, valueStatus: "NotCovered" }), true);
  assert.equal(isGap({ value: null, valueStatus: "NoPrice" }), false);
  assert.equal(isPartial({ value: "1", valueComplete: false }), true);
  assert.equal(isPartial({ value: null, valueComplete: false }), false);
  assert.equal(isoDay(wholeDay(startOf("2026-01-31") + 86_399_999)), "2026-01-31");
});

test("shares are exact quotients", () => {
  assert.equal(share("1", "3"), "33.3333");
  assert.equal(share("2", "3"), "66.6667");
  assert.equal(share("-0.5", "1"), "-50.0000");
  const huge = (2n ** 256n).toString();
  assert.equal(share(huge, huge), "100.0000");
});

test("a single day has room on both sides, and an axis of close values does not begin at zero", () => {
  assert.deepEqual(around([startOf("2026-11-24"), startOf("2026-11-25")]).map(isoDay), ["2026-11-23", "2026-11-26"]);
  const long = [startOf("2026-11-20"), startOf("2026-11-25")];
  assert.deepEqual(around(long), long);
  assert.equal(startsAtZero([100, 400]), true);
  assert.equal(startsAtZero([291, 303]), false);
});
