/** How many holders there were at the end of each interval; those that are not collected are grey, not zero. */

import "echarts/lib/chart/line.js";
import "echarts/lib/component/markArea.js";

import { DAY_MS, dayOf, startOf, stretches } from "../days.js";
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
  return {
    grid: { left: 52, right: 20, top: 14, bottom: 26 },
    tooltip: tooltip(colours, {
      trigger: "axis",
      axisPointer: { lineStyle: { color: colours.muted } },
      formatter: ([point]) => described(ends[point.dataIndex]),
    }),
    xAxis: timeAxis(colours, points[0][0], points.at(-1)[0] + (points.length === 1 ? DAY_MS : 0)),
    yAxis: valueAxis(colours, {
      scale: true,
      splitNumber: 3,
      minInterval: 1,
      axisLabel: { formatter: (value) => (value < COMPACT_FROM ? count(value) : tick(value)) },
    }),
    series: [
      {
        type: "line",
        step: "end",
        data: points,
        showSymbol: known.length === 1,
        symbolSize: 7,
        lineStyle: { width: 2, color: colours.accent },
        itemStyle: { color: colours.accent },
        markArea: bands(
          stretches(ends, ({ holderCount }) => holderCount === null),
          colours,
        ),
      },
    ],
  };
};

function described({ at, holderCount, holderCountStatus, isComplete }) {
  if (holderCount === null) return `${day(at)}\n${reasonOf(holderCountStatus)}`;
  return `${day(at)}${isComplete ? "" : " (not over)"}\n${count(holderCount)} holders`;
}
