/** Shares as areas, which are easier to compare than a donut if one holder dominates. */

import "echarts/lib/chart/treemap.js";

import { percent } from "../format.js";
import { areas, shareTooltip } from "./ownership.js";

const NAMED_FROM = 10; // percent of the area: smaller areas have room only for the rank, or for nothing
const RANKED_FROM = 1.2;

function label({ name, value, exact, rank }, slices) {
  const area = (100 * value) / slices.reduce((sofar, { pixels }) => sofar + pixels, 0);
  if (area >= NAMED_FROM) return `${name}\n${percent(exact)}`;
  return area >= RANKED_FROM && rank !== null ? String(rank) : "";
}

/** @param {import("./ownership.js").Slice[]} slices */
export const treemap = (slices) => (colours) => ({
  tooltip: shareTooltip(colours),
  series: [
    {
      type: "treemap",
      left: 0,
      right: 0,
      top: 0,
      bottom: 0,
      roam: false,
      nodeClick: false,
      breadcrumb: { show: false },
      data: areas(slices, colours),
      itemStyle: { borderColor: colours.card, borderWidth: 0, gapWidth: 2, borderRadius: 3 },
      label: {
        fontSize: 12,
        lineHeight: 16,
        overflow: "break",
        fontFamily: colours.font,
        formatter: ({ data }) => label(data, slices),
      },
    },
  ],
});
