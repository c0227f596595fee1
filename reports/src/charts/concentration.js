/** Share of the N largest holders together, with N on a logarithmic axis and a line at one half. */

import "echarts/lib/chart/line.js";
import "echarts/lib/component/markLine.js";

import { toPixels } from "../decimal.js";
import { count, percent, percentTick, plural } from "../format.js";
import { axis, tooltip, valueAxis } from "./base.js";

/**
 * @param {{holders: number, percentage: string}[]} curve at least one point
 * @param {number | null} nakamoto fewest holders with more than half, or null if there are none
 */
export const concentration = (curve, nakamoto) => (colours) => {
  const points = curve.map(({ holders, percentage }) => [holders, toPixels(percentage)]);
  const last = points.at(-1)[0];
  const highest = Math.max(100, ...points.map(([, share]) => share));
  return {
    grid: { left: 44, right: 20, top: 14, bottom: 40 },
    tooltip: tooltip(colours, {
      trigger: "axis",
      axisPointer: { lineStyle: { color: colours.muted } },
      formatter: ([point]) => described(curve[point.dataIndex]),
    }),
    xAxis: axis(colours, {
      type: "log",
      min: 1,
      max: Math.max(last, 10),
      name: "Number of largest holders (log scale)",
      nameLocation: "middle",
      nameGap: 26,
      nameTextStyle: { color: colours.muted, fontSize: 11 },
      axisLabel: { formatter: (value) => count(value) },
    }),
    yAxis: valueAxis(colours, {
      min: 0,
      max: highest,
      interval: highest > 100 ? undefined : 25,
      axisLabel: { formatter: (value) => percentTick(value) },
    }),
    series: [
      {
        type: "line",
        data: points,
        showSymbol: points.length === 1,
        symbolSize: 7,
        lineStyle: { width: 2, color: colours.accent },
        itemStyle: { color: colours.accent },
        areaStyle: { color: colours.accentArea },
        markLine: half(nakamoto, colours),
      },
    ],
  };
};

function described({ holders, percentage }) {
  const who = holders === 1 ? "The largest holder" : `The ${count(holders)} largest holders`;
  return `${who}\n${percent(percentage)} of the supply`;
}

function half(nakamoto, colours) {
  return {
    silent: true,
    symbol: "none",
    lineStyle: { color: colours.warn, type: "dashed", width: 1 },
    label: {
      position: "insideStartTop",
      color: colours.warn,
      fontSize: 11,
      formatter: nakamoto === null ? percentTick(50) : `${percentTick(50)} · ${plural(nakamoto, "holder")}`,
    },
    data: [{ yAxis: 50 }],
  };
}
