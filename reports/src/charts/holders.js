/** Number of holders at the end of each interval; uncollected intervals are grey, not zero. */

import "echarts/lib/chart/line.js";
import "echarts/lib/component/markArea.js";

import { DAY_MS, around, dayOf, startOf, startsAtZero, stretches } from "../days.js";
import { count, day, tick } from "../format.js";
import { reasonOf } from "../status.js";
import { tooltip, valueAxis } from "./base.js";
import { bands, timeAxis } from "./time.js";

const COMPACT_FROM = 100_000;

/**
 * @typedef {{at: string, holderCount: number | null, holderCountStatus: string, isComplete: boolean}} End
 */

/** @param {End[]} ends at least one, of days, weeks or months */
export const holdersOverTime = (ends) => (colours) => {
  const points = ends.map((end) => [startOf(dayOf(end)), end.holderCount]);
  const known = points.map(([, holders]) => holders).filter((holders) => holders !== null);
  const fromZero = startsAtZero(known);
  const last = points.findLastIndex(([, holders]) => holders !== null);
  const range = points.length === 1 ? around([points[0][0], points[0][0] + DAY_MS]) : [points[0][0], points.at(-1)[0]];
  return {
    grid: { left: 52, right: 30, top: 24, bottom: 26 },
    tooltip: tooltip(colours, {
      trigger: "axis",
      axisPointer: { lineStyle: { color: colours.muted } },
      formatter: ([point]) => described(ends[point.dataIndex]),
    }),
    xAxis: timeAxis(colours, ...range),
    yAxis: valueAxis(colours, {
      scale: !fromZero,
      splitNumber: 3,
      minInterval: 1,
      axisLabel: { formatter: short },
    }),
    series: [
      {
        type: "line",
        step: "end",
        data: points.map((value, index) => (index === last ? marked(value, colours) : value)),
        symbol: "none",
        lineStyle: { width: 2, color: colours.accent },
        itemStyle: { color: colours.accent },
        areaStyle: { color: fromZero ? colours.accentArea : "transparent" },
        markArea: bands(
          stretches(ends, ({ holderCount }) => holderCount === null),
          colours,
        ),
      },
    ],
  };
};

// The newest number, at the end of the line.
const marked = (value, colours) => ({
  value,
  symbol: "circle",
  symbolSize: 7,
  label: {
    show: true,
    position: "top",
    color: colours.text,
    fontSize: 12,
    fontWeight: 600,
    formatter: short(value[1]),
  },
});

const short = (holders) => (holders < COMPACT_FROM ? count(holders) : tick(holders));

function described({ at, holderCount, holderCountStatus, isComplete }) {
  if (holderCount === null) return `${day(at)}\n${reasonOf(holderCountStatus)}`;
  return `${day(at)}${isComplete ? "" : " (not over)"}\n${count(holderCount)} holders`;
}
