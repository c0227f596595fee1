/** The charts of a cap table: ownership, concentration, and holders over time. */

import { negated, sum, toPixels } from "../decimal.js";
import { byId, el, name, press, show } from "../dom.js";
import { count, day, exact, percent, plural, shortened, trend } from "../format.js";
import { startsAtZero } from "../days.js";
import { bounded, reasonOf } from "../status.js";

const REST = "Part of the supply that no holder seen so far has. History since the contract's creation makes it zero.";
const OVER = "The balances add up to more than the total supply.";

const INTERVALS = { "1d": "day", "1w": "week", "1M": "month" };

let summary = null;
let charts = null;
let shape = "donut";

/**
 * @param {any} report the summary
 * @param {any} drawing the charts' module
 */
export function drawCharts(report, drawing) {
  [summary, charts] = [report, drawing];
  const { largest, curve, concentration, holdersInterval, holdersOverTime, holderCount } = summary;
  const shares = largest.length > 0 && largest[0].percentage !== null;
  show("ownership", shares, drawOwnership);
  show("concentration", curve.length > 0, () => {
    const label = `Concentration curve. ${sentence(concentration)}`;
    charts.draw("concentration-chart", label, charts.concentration(curve, concentration.nakamoto));
    charts.dataTable("concentration-data", "Concentration curve", ["Largest holders", "Share of supply"], () =>
      curve.map((point) => [count(point.holders), `${exact(point.percentage)} %`]),
    );
  });
  const ends = fromFirstHolder(holdersOverTime);
  show("history", ends.length > 0, () => {
    const days = `${day(ends[0].at)} to ${day(ends.at(-1).at)}`;
    const each = INTERVALS[holdersInterval];
    byId("history-interval").textContent = each;
    const label = `Number of holders by ${each}, ${days}; ${plural(holderCount, "holder")} at the end.`;
    charts.draw("history-chart", label, charts.holdersOverTime(ends));
    const counts = ends.map(({ holderCount: number }) => number).filter((number) => number !== null);
    byId("history-cut").hidden = startsAtZero(counts);
    byId("history-gaps").hidden = ends.every((point) => point.holderCount !== null);
    const heads = [each === "day" ? "Day (UTC)" : `End of ${each} (UTC)`, "Holders"];
    charts.dataTable("history-data", `Holders by ${each}`, heads, () =>
      holdersOverTime.map((point) => [
        day(point.at),
        point.holderCount === null ? reasonOf(point.holderCountStatus) : count(point.holderCount),
      ]),
    );
  });
}

// Omit the time before the first holder.
function fromFirstHolder(ends) {
  const first = ends.findIndex(({ holderCount }) => holderCount !== 0);
  return first < 0 ? [] : ends.slice(first);
}

function sentence({ top10, top10Status, nakamoto }) {
  const half = nakamoto === null ? "" : ` ${plural(nakamoto, "holder")} have more than half of the supply.`;
  return `The ten largest holders have ${bounded(percent(top10), top10Status)}.${half}`;
}

function slicesOf({ largest, holderCount, unattributed, concentration }) {
  const slices = largest.map((holder) => ({
    name: holder.name ?? shortened(holder.wallet),
    title: holder.name ? `${holder.name}\n${holder.wallet}` : holder.wallet,
    percentage: holder.percentage,
    kind: "holder",
  }));
  const others = sum(["100", negated(concentration.top10), negated(unattributed.percentage)]);
  if (holderCount > largest.length) {
    slices.push({ name: plural(holderCount - largest.length, "other holder"), percentage: others, kind: "others" });
  }
  if (trend(unattributed.percentage) !== "flat") {
    slices.push({ name: "Not attributed", percentage: unattributed.percentage, kind: "rest", title: REST });
  }
  // A negative remainder (balances above the supply) has no area; the legend and the note show it.
  return slices.map((slice) => ({ ...slice, pixels: Math.max(0, toPixels(slice.percentage) ?? 0) }));
}

function drawOwnership() {
  const slices = slicesOf(summary);
  const { top10, top10Status } = summary.concentration;
  const middle =
    summary.holderCount > 10
      ? { number: bounded(percent(top10), top10Status), label: "top 10" }
      : { number: count(summary.holderCount), label: summary.holderCount === 1 ? "holder" : "holders" };
  const label = `Ownership. ${slices.map((slice) => `${slice.name}: ${percent(slice.percentage)}`).join("; ")}.`;
  charts.draw("ownership-chart", label, shape === "treemap" ? charts.treemap(slices) : charts.donut(slices, middle));
  const lines = slices.map(({ name: text, title, percentage, kind }, index) =>
    el(
      "li",
      null,
      el(`i.swatch.${kind === "holder" ? `c${index + 1}` : kind}`),
      name(text, { title: title ?? text }),
      el("span.share", { title: `${exact(percentage)} %` }, percent(percentage)),
    ),
  );
  byId("ownership-legend").replaceChildren(...lines);
  const remainder = trend(summary.unattributed.percentage);
  byId("remainder").textContent = remainder === "up" ? REST : remainder === "down" ? OVER : "";
}

press("shape", (chosen) => {
  shape = chosen;
  if (charts) drawOwnership();
});
