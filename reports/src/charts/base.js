/**
 * Base of all charts: parts of ECharts, colours from the page's theme, size, and a description in words.
 *
 * Each chart imports the parts that it needs; a barrel file would put the parts of all pages into every page.
 *
 * SVG and rich-text tooltips: ECharts' HTML tooltips write style attributes, which the Content-Security-Policy forbids.
 */

import "echarts/lib/component/grid.js";
import "echarts/lib/component/tooltip.js";
import { init, use } from "echarts/core";
import { SVGRenderer } from "echarts/renderers";

import { byId } from "../dom.js";

use([SVGRenderer]);

const COLOURS = 10;
const printing = matchMedia("print");

/**
 * The colours of the current theme.
 * @returns {Record<string, any>}
 */
function palette() {
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(`--${name}`).trim();
  const names = [
    "accent",
    "accent-area",
    "text",
    "muted",
    "line",
    "grid",
    "card",
    "gap",
    "warn",
    "others",
    "rest",
    "on-series",
  ];
  return {
    ...Object.fromEntries(
      names.map((name) => [name.replace(/-(\w)/g, (_, letter) => letter.toUpperCase()), colour(name)]),
    ),
    series: Array.from({ length: COLOURS }, (_, index) => colour(`c${index + 1}`)),
    font: getComputedStyle(document.body).fontFamily,
    onPaper: printing.matches,
  };
}

/** One chart in one element. */
class Chart {
  #chart;
  #element;
  #build;

  /**
   * @param {HTMLElement} element with a height
   * @param {string} label description in words
   * @param {(colours: Record<string, any>) => object} build its ECharts option
   */
  constructor(element, label, build) {
    this.#element = element;
    this.#build = build;
    this.#chart = init(element, null, { renderer: "svg" });
    this.update(label, build);
    new ResizeObserver(() => this.#resize()).observe(element);
    document.addEventListener("themechange", () => this.#draw());
    printing.addEventListener("change", () => this.#draw());
  }

  /** @param {string} label @param {(colours: Record<string, any>) => object} build */
  update(label, build) {
    this.#build = build;
    this.#element.setAttribute("role", "img");
    this.#element.setAttribute("aria-label", label);
    this.#draw();
  }

  /** @param {string} event @param {(about: any) => void} listener */
  on(event, listener) {
    this.#chart.on(event, listener);
  }

  /** @param {object} action of ECharts */
  act(action) {
    this.#chart.dispatchAction(action);
  }

  /** @returns {any} the current option */
  get option() {
    return this.#chart.getOption();
  }

  #resize() {
    const { clientWidth, clientHeight } = this.#element;
    if (clientWidth === 0 || (clientWidth === this.#chart.getWidth() && clientHeight === this.#chart.getHeight()))
      return;
    this.#chart.resize();
    this.#draw();
  }

  #draw() {
    const colours = palette();
    const common = { animation: false, useUTC: true, textStyle: { fontFamily: colours.font, color: colours.text } };
    const zoom = this.#chart.getOption()?.dataZoom?.[0];
    const option = { ...common, ...this.#build(colours) };
    if (zoom && option.dataZoom) {
      option.dataZoom = option.dataZoom.map((each) => ({ ...each, start: zoom.start, end: zoom.end }));
    }
    this.#chart.setOption(option, { notMerge: true });
    // Printing changes the layout without an event; with a view box the drawing shrinks to fit.
    const size = `0 0 ${this.#chart.getWidth()} ${this.#chart.getHeight()}`;
    this.#element.querySelector("svg").setAttribute("viewBox", size);
  }
}

const drawn = new Map();

/**
 * Draw or redraw a chart.
 * @param {string} id of its element
 * @param {string} label description in words
 * @param {(colours: Record<string, any>) => object} build its ECharts option
 * @returns {Chart}
 */
export function draw(id, label, build) {
  const chart = drawn.get(id);
  if (chart) chart.update(label, build);
  else drawn.set(id, new Chart(byId(id), label, build));
  return drawn.get(id);
}

/** @param {Record<string, any>} colours @param {object} [more] */
export const tooltip = (colours, more = {}) => ({
  renderMode: "richText",
  confine: true,
  backgroundColor: colours.card,
  borderColor: colours.line,
  borderWidth: 1,
  padding: [8, 12],
  textStyle: { color: colours.text, fontSize: 12, lineHeight: 18, fontFamily: colours.font },
  ...more,
});

/** @param {Record<string, any>} colours @param {object} more */
export const axis = (colours, more) => ({
  axisLine: { show: false },
  axisTick: { show: false },
  splitLine: { show: false },
  ...more,
  axisLabel: { color: colours.muted, fontSize: 11, fontFamily: colours.font, hideOverlap: true, ...more.axisLabel },
});

/** @param {Record<string, any>} colours @param {object} more */
export const valueAxis = (colours, more) =>
  axis(colours, { type: "value", splitNumber: 4, splitLine: { lineStyle: { color: colours.grid } }, ...more });

/**
 * Foreign text for a rich-text canvas: without markup or control characters, one short line.
 * @param {string} text
 * @param {number} [longest]
 */
export function plain(text, longest = 34) {
  const clean = text.replace(/\p{C}/gu, "").replaceAll("{", "(").replaceAll("}", ")").replaceAll("|", "/");
  const letters = [...clean];
  return letters.length > longest ? `${letters.slice(0, longest - 1).join("")}…` : clean;
}
