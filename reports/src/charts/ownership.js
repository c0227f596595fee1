/** Donut of the largest holders, all other holders, and unattributed supply. */

import "echarts/lib/chart/pie.js";

import { percent } from "../format.js";
import { plain, tooltip } from "./base.js";

/**
 * @typedef {{name: string, percentage: string, pixels: number, kind: "holder" | "others" | "rest"}} Slice
 */

/**
 * @param {Slice[]} slices in order of colours
 * @param {{number: string, label: string}} middle of the donut
 */
export const donut = (slices, middle) => (colours) => {
  const data = areas(slices, colours);
  data[0].label = middleLabel(middle, colours); // only on one slice: all would draw it in the same place
  const ring = {
    type: "pie",
    radius: ["62%", "94%"],
    startAngle: 90,
    data,
    cursor: "default",
    emphasis: { scaleSize: 3 },
    itemStyle: { borderColor: colours.card, borderWidth: 2, borderRadius: 3 },
    label: { show: false },
    labelLine: { show: false },
  };
  return { tooltip: shareTooltip(colours), series: [ring] };
};

const middleLabel = ({ number, label }, colours) => ({
  show: true,
  position: "center",
  formatter: `{number|${plain(number)}}\n{label|${label}}`,
  rich: {
    number: { fontSize: 22, fontWeight: 600, color: colours.text, lineHeight: 28, fontFamily: colours.font },
    label: { fontSize: 12, color: colours.muted, lineHeight: 18, fontFamily: colours.font },
  },
});

/** @param {Slice[]} slices @param {Record<string, any>} colours @returns {object[]} data of a series */
export const areas = (slices, colours) =>
  slices.map((slice, index) => ({
    name: plain(slice.name),
    value: slice.pixels,
    exact: slice.percentage,
    rank: slice.kind === "holder" ? index + 1 : null,
    itemStyle: { color: colourOf(slice, index, colours) },
    label: { color: slice.kind === "holder" ? colours.onSeries : colours.text },
  }));

/** @param {Record<string, any>} colours */
export const shareTooltip = (colours) =>
  tooltip(colours, { formatter: ({ data }) => (data?.exact ? `${data.name}\n${percent(data.exact)}` : "") });

const colourOf = ({ kind }, index, colours) =>
  kind === "holder" ? colours.series[index % colours.series.length] : colours[kind];
