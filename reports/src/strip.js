/** Provenance of the numbers: as-of block and finality, coverage and gaps, reconciliation, price. */

import { byId, el, explored, fill, icon } from "./dom.js";
import { count, day, instant, isDayEnd, moment, plural } from "./format.js";
import { markSheets } from "./paper.js";
import { checkOf, gapReason, noBlock, reasonOf } from "./status.js";

/**
 * Draw the strip.
 * @param {{asOf: object, asOfStatus?: string, coverage: object, reconciliation: object, explorer: string | null, price?: Node,
 *     holdersStatus?: string}} facts
 */
export function drawStrip({ asOf, asOfStatus, coverage, reconciliation, explorer, price = null, holdersStatus = "Complete" }) {
  fill("strip", blockItem("As of", asOf, explorer, asOfStatus), coverageItem(coverage, holdersStatus), checked(reconciliation, asOfStatus), price);
}

/**
 * Draw the strip of a report of two moments.
 * @param {{from: object, to: object, coverage: object, explorer: string | null}} facts coverage of the time between
 */
export function drawStripBetween({ from, to, fromStatus, toStatus, coverage, explorer }) {
  const blocks = [blockItem("From", from, explorer, fromStatus), blockItem("To", to, explorer, toStatus)];
  fill("strip", ...blocks, coverageItem(coverage));
}

/** @param {string} which icon @param {string} label @param {...(Node | string | null)} text */
export function item(which, label, ...text) {
  return el("div.fact", null, icon(which), el("div", null, el("span.label", null, label), ...text));
}

function blockItem(label, { at, blockNumber, blockHash, blockTime, finality }, explorer, asOfStatus) {
  if (blockNumber === null) return item("block", label, el("span.figure", null, noBlock(asOfStatus)));
  return item(
    "block",
    label,
    el("span.figure", null, `Block ${count(blockNumber)} `),
    finality && el(`span.badge.${finality.toLowerCase()}`, { title: FINALITY[finality] }, finality),
    el("span.sub", null, blockTime === null ? "time of the block not stored" : instant(blockTime, { seconds: true })),
    lastBefore(at, blockTime),
    blockHash && el("span.sub", null, explored(explorer, "block", blockHash, "block hash")),
  );
}

// Explain why a report as of a moment names an earlier block.
function lastBefore(at, blockTime) {
  if (at === null || blockTime === null || Date.parse(at) === Date.parse(blockTime)) return null;
  const before = isDayEnd(at) ? `before the end of ${day(at)}` : `up to ${instant(at, { seconds: true })}`;
  const title = "Nothing in this report changed between this block and that moment.";
  return el("span.sub", { title }, `last stored block ${before}`);
}

// Print cannot be unfolded.
matchMedia("print").addEventListener("change", ({ matches }) => {
  for (const details of byId("strip").querySelectorAll("details")) details.open = matches;
});

const FINALITY = {
  Finalized: "The network will not take this block back.",
  Confirmed: "The network may still replace this block; the figures would follow.",
};

function coverageItem({ complete, from, to, gaps }, holdersStatus = "Complete") {
  const title = from && `${instant(from)} – ${to ? instant(to) : "now"}`;
  const range = from && el("span.sub", { title }, `${day(from)} – ${to ? day(to) : "now"}`);
  // The requested time is complete; earlier time may not be.
  const words = holdersStatus === "Complete" ? "Complete" : from ? `No gaps since ${day(from)}` : "No gaps";
  if (complete) return item("coverage", "Coverage", el("span.figure", null, words), range);
  const list = el("ul", null, ...gaps.map((gap) => el("li", null, describe(gap))));
  const summary = el("summary.figure", null, gaps.length ? plural(gaps.length, "gap") : "Incomplete");
  return item("coverage", "Coverage", el("details", null, summary, list), range);
}

function describe({ from, to, fromBlock, toBlock, reason }) {
  const times = `${from ? instant(from) : "the beginning"} – ${to ? instant(to) : "now"}`;
  const blocks = fromBlock !== null && toBlock !== null ? ` (blocks ${count(fromBlock)} – ${count(toBlock)})` : "";
  return `${times}${blocks}: ${gapReason(reason)}`;
}

/** @param {{gaps: {reason: string}[]}} coverage @returns {string} reason of an empty report, as a sentence */
export function whyEmpty({ gaps }) {
  const reasons = [...new Set(gaps.map(({ reason }) => gapReason(reason)))];
  return reasons.length ? `Why: ${reasons.join("; ")}.` : "Nothing was collected for it yet.";
}

const STATES = ["Reconciled", "Adjusted", "Unchecked"];

function checked(reconciliation, asOfStatus) {
  if (reconciliation.status === "NotYetCollected") {
    const why = asOfStatus === "BeforeCreation" ? "Nothing to compare" : reasonOf("NotYetCollected");
    return item("check", "Reconciliation", el("span.figure", null, why));
  }
  const counts = STATES.map((state) => [state, reconciliation[state.toLowerCase()]]);
  const total = counts.reduce((sofar, [, number]) => sofar + number, 0);
  const bar = el("span.stack", { "aria-hidden": true });
  for (const [state, number] of counts.filter(([, each]) => each > 0)) {
    const part = el(`span.${state.toLowerCase()}`);
    part.style.flexGrow = String(number / total);
    bar.append(part);
  }
  const words = counts
    .filter(([, number]) => number > 0)
    .map(([state, number]) =>
      el(
        "span.check",
        { title: checkOf(state).meaning },
        el(`i.dot.${state.toLowerCase()}`),
        `${count(number)} ${state.toLowerCase()}`,
      ),
    );
  return item("check", "Reconciliation", el("span.checks", null, ...(words.length ? words : ["Nothing to compare"])), total > 0 && bar);
}

/** Show the parts of a page that need data, or the reason why there is none. @param {boolean} collected */
export function showCollected(collected) {
  for (const part of document.querySelectorAll("[data-needs=data]")) part.hidden = !collected;
  byId("nothing").hidden = collected;
  byId("content").hidden = false;
}

/**
 * Heading of a page and of its printed sheets.
 * @param {{title: Node[], subtitle: (Node | string)[], moment: Node, asOf: any, asOfStatus?: string, from?: any}} head
 *     `from`: the earlier moment of a report of two
 */
export function drawHead({ title, subtitle, moment, asOf, asOfStatus, from }) {
  markSheets(document.title, asOf, noBlock(asOfStatus), from);
  fill("title", ...title);
  fill("subtitle", ...subtitle);
  fill("moment", moment);
}

/** @param {{at: string | null}} asOf @param {boolean} isCurrent @returns {Node} */
export function momentOf(asOf, isCurrent) {
  return el("span", null, age(isCurrent), asOf.at === null ? "" : ` As of ${moment(asOf.at)}`);
}

/** @param {any} from @param {any} to @param {boolean} isCurrent the later one is the newest @returns {Node} */
export function momentsOf(from, to, isCurrent) {
  const when = from.at !== null && to.at !== null && `${moment(from.at)} → ${moment(to.at)} · `;
  const blocks = `blocks ${blockOf(from)} → ${blockOf(to)}`;
  return el("span", null, age(isCurrent), " ", when, blocks);
}

const blockOf = ({ blockNumber }) => (blockNumber === null ? "before creation" : count(blockNumber));

const age = (isCurrent) =>
  el(isCurrent ? "span.badge.current" : "span.badge.past", null, isCurrent ? "Latest" : "Past moment");

/** @param {string} label @param {Node} number @param {Node | string | null} [sub] @returns {Node} a headline number */
export function kpi(label, number, sub = null) {
  number.classList.add("number");
  return el("div.card.kpi", null, el("dt", null, label), el("dd", null, number, sub && el("span.sub", null, sub)));
}

/** @param {...Node} tiles */
export const drawKpis = (...tiles) => byId("kpis").replaceChildren(...tiles);
