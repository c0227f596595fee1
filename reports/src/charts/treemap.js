/** The donut's shares as areas, which compare better where one holder dwarfs the rest. */

import "echarts/lib/chart/treemap.js";

import { percent } from "../format.js";
import { areas, shareTooltip } from "./ownership.js";

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
        overflow: "truncate",
        fontFamily: colours.font,
        formatter: ({ data }) => `${data.name}\n${percent(data.exact)}`,
      },
    },
  ],
});
