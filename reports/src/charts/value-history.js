/**
 * Value of a wallet at the end of each day. The line is dashed if some positions have no price, and broken if none has.
 * Uncollected days are grey bands.
 */

import "echarts/lib/chart/line.js";
import "echarts/lib/component/dataZoomSlider.js";
import "echarts/lib/component/markArea.js";

import { DAY_MS, dayOf, isGap, isPartial, startOf, startsAtZero, stretches } from "../days.js";
import { toPixels } from "../decimal.js";
import { amount, day, tick } from "../format.js";
import { reasonOf } from "../status.js";
import { plain, tooltip, valueAxis } from "./base.js";
import { bands, timeAxis } from "./time.js";

const SHORTEST = 7 * DAY_MS; // shortest range of the zoom

/**
 * @typedef {object} Point
 * @property {string} at
 * @property {string | null} value
 * @property {string} valueStatus
 * @property {boolean} valueComplete
 * @property {string[]} unpriced
 * @property {boolean} isComplete
 */

/**
 * @param {Point[]} history one per day, at least one
 * @param {[number, number]} range milliseconds
 * @param {string} currency
 */
export const valueHistory = (history, range, currency) => (colours) => {
  const at = (index) => [startOf(dayOf(history[index])), toPixels(history[index].value)];
  const full = history.map((point, index) => (isPartial(point) ? [at(index)[0], null] : at(index)));
  // Partial days are drawn from the previous complete day to the next one, so that the line does not break.
  const touches = (index) => [index - 1, index, index + 1].some((near) => history[near] && isPartial(history[near]));
  const partial = history.map((_, index) => (touches(index) ? at(index) : [at(index)[0], null]));
  const all = history.map((_, index) => at(index));
  const known = all.map(([, value]) => value).filter((value) => value !== null);
  const fromZero = startsAtZero(known); // a filled area must start at zero, or its heights would mislead
  const digits = digitsBetween(known);
  const line = (data, color, type) => ({
    type: "line",
    data,
    showSymbol: known.length === 1,
    symbolSize: 7,
    lineStyle: { width: 2, color, type },
    itemStyle: { color },
    emphasis: { disabled: true },
  });
  const area = {
    ...line(all, "transparent"),
    areaStyle: { color: fromZero ? colours.accentArea : "transparent" },
    markArea: bands(stretches(history, isGap), colours),
  };
  return {
    grid: zoomGrid(colours, range),
    tooltip: tooltip(colours, {
      trigger: "axis",
      axisPointer: { lineStyle: { color: colours.muted } },
      formatter: ([point]) => described(history[point.dataIndex], currency),
    }),
    xAxis: timeAxis(colours, ...range),
    yAxis: valueAxis(colours, {
      scale: !fromZero,
      axisLabel: { formatter: (value) => tick(value, { currency, digits }) },
    }),
    dataZoom: [zoomSlider(colours, range)],
    series: [area, line(full, colours.accent, "solid"), line(partial, colours.warn, "dashed")],
  };
};

// Enough digits to distinguish neighbouring ticks: close values share their first digits.
function digitsBetween(values) {
  const [least, most] = [Math.min(...values), Math.max(...values)];
  const step = (most - least) / 5;
  return step > 0 ? Math.min(9, Math.max(4, 1 + Math.ceil(Math.log10(Math.max(Math.abs(least), Math.abs(most)) / step)))) : 4;
}

function described(point, currency) {
  const head = `${day(point.at)}${point.isComplete || isGap(point) ? "" : " (not over)"}`;
  if (point.value === null) return `${head}\n${reasonOf(point.valueStatus)}`;
  const missing = point.unpriced.length
    ? `\nwithout ${point.unpriced
        .slice(0, 3)
        .map((each) => plain(each, 20))
        .join(", ")}${more(point)}`
    : "";
  return `${head}\n${amount(point.value, { currency })}${missing}`;
}

const more = ({ unpriced }) => (unpriced.length > 3 ? ` and ${unpriced.length - 3} more` : "");

const hasSlider = ({ onPaper }, [from, to]) => !onPaper && to - from > SHORTEST;

/**
 * The space of a chart above its slider, if it has one.
 * @param {Record<string, any>} colours
 * @param {[number, number]} range milliseconds
 */
export const zoomGrid = (colours, range) => ({
  left: 60,
  right: 16,
  top: 14,
  bottom: hasSlider(colours, range) ? 76 : 28,
});

/**
 * The slider under both charts of a wallet; a page synchronises the two.
 * @param {Record<string, any>} colours
 * @param {[number, number]} range milliseconds
 */
export const zoomSlider = (colours, range) => ({
  type: "slider",
  show: hasSlider(colours, range),
  height: 26,
  bottom: 10,
  borderColor: colours.line,
  backgroundColor: "transparent",
  fillerColor: colours.accentArea,
  brushSelect: false,
  minValueSpan: SHORTEST,
  handleStyle: { color: colours.card, borderColor: colours.accent },
  moveHandleStyle: { color: colours.line },
  emphasis: {
    handleStyle: { color: colours.accentArea, borderColor: colours.accent },
    moveHandleStyle: { color: colours.accent },
  },
  dataBackground: { lineStyle: { color: colours.muted, opacity: 0.6 }, areaStyle: { opacity: 0 } },
  selectedDataBackground: { lineStyle: { color: colours.accent }, areaStyle: { opacity: 0 } },
  labelFormatter: (value) => day(value),
  textStyle: { color: colours.muted, fontSize: 11 },
  showDetail: false,
});
