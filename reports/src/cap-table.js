/** The cap table report: holders of a token at a moment, concentration, and history. */

import { missingHolders } from "./cap-table/incomplete.js";
import { columns } from "./cap-table/rows.js";
import { drawCharts } from "./cap-table/series.js";
import { el, figure, fill, isolated, valued } from "./dom.js";
import { compact, count, exact, fixed, instant, percent, trend } from "./format.js";
import { drawIncomplete } from "./incomplete.js";
import { Page } from "./page.js";
import { bounded, reasonOf } from "./status.js";
import { drawHead, drawKpis, drawStrip, item, kpi, momentOf, showCollected, whyEmpty } from "./strip.js";
import { Table, firstPage } from "./table.js";
import { subtitleOf, titleOf, unitOf } from "./token.js";

const PATH = "/embed/data/cap-table";
const SORT = "rank";
const BEFORE_CREATION = "BeforeCreation";
const HIGHEST_UNCONCENTRATED = 1000; // of the HHI; above 1,800 highly concentrated (merger guidelines of 2023)
const HIGHEST_MODERATE = 1800;

// The charts are the largest part of the page: load them in parallel with the numbers.
const chartsReady = import("./charts/cap-table-charts.js");

let summary = null;
let table = null;

const page = new Page(async (session) => {
  const first = table ? null : firstPage(session, PATH, SORT);
  [summary] = await Promise.all([session.get(`${PATH}/summary`), first]);
  document.title = `${summary.token.name ?? summary.token.symbol} cap table`;
  table ??= new Table({
    columns: columns(summary),
    path: PATH,
    sort: SORT,
    what: ["holder", "holders"],
    filters: ["filter-reconciliation"],
    drop: ["change", "bar", "value"],
    onFailure: (failure) => page.fail(failure),
  });
  const collected = summary.holderCountStatus !== "NotYetCollected" && summary.asOfStatus !== BEFORE_CREATION;
  drawTop(collected);
  showCollected(collected);
  if (!collected) return "empty";
  const [charts] = await Promise.all([chartsReady, table.start(session, summary.dataVersion, await first)]);
  drawCharts(summary, charts);
  return "ready";
});

function drawTop(collected) {
  const { token, asOf, asOfStatus, isCurrent, price, priceStatus, priceEffectiveFrom, currency } = summary;
  drawHead({
    title: titleOf(token),
    subtitle: subtitleOf("Cap table", token),
    moment: momentOf(asOf, isCurrent),
    asOf,
    asOfStatus,
  });
  const since = priceEffectiveFrom && el("span.sub", null, `since ${instant(priceEffectiveFrom)}`);
  const priced = valued(price, priceStatus, { currency });
  priced.classList.add("figure");
  drawIncomplete(collected ? missingHolders(summary) : null); // without any holder the page shows the reason instead
  const fact = item("price", `Price of one ${isolated(token.symbol)}`, priced, since);
  drawStrip({ ...summary, explorer: token.explorer, price: asOfStatus === BEFORE_CREATION ? null : fact });
  if (collected) drawKpis(...tiles());
  else if (asOfStatus === BEFORE_CREATION) {
    fill("nothing", el("h2", null, "Nobody held it yet"), el("p", null, "At this moment the token's contract was not there."));
  } else fill("nothing", el("h2", null, "No holders to show yet"), el("p", null, whyEmpty(summary.coverage)));
}

function tiles() {
  const {
    token,
    totalSupply,
    totalSupplyStatus,
    holderCount,
    holderCountStatus,
    marketCapitalization,
    marketCapitalizationStatus,
    currency,
  } = summary;
  const { top10, top10Status, nakamoto, nakamotoStatus, gini, giniStatus, hhi, hhiStatus } = summary.concentration;
  const missing = (value, why) => (value === null ? reasonOf(why) : null);
  const unit = unitOf(token);
  return [
    kpi(
      "Total supply",
      figure(compact(totalSupply), {
        title: `${exact(totalSupply)} ${unit}`,
        missing: missing(totalSupply, totalSupplyStatus),
      }),
      totalSupplyStatus === "Unconfirmed" ? `${unit} · not confirmed` : unit,
    ),
    kpi("Holders", figure(bounded(count(holderCount), holderCountStatus), { title: count(holderCount) }), unattributedLine()),
    kpi(
      "Market value",
      valued(marketCapitalization, marketCapitalizationStatus, { currency }, compact),
      "supply × price",
    ),
    kpi(
      "Top 10 holders",
      figure(bounded(percent(top10), top10Status), {
        title: `${exact(top10)} %`,
        missing: missing(top10, top10Status),
      }),
      largestLine(),
    ),
    kpi(
      "Nakamoto coefficient",
      figure(count(nakamoto), { missing: missing(nakamoto, nakamotoStatus) }),
      "holders with over 50%",
    ),
    kpi(
      "Gini coefficient",
      figure(fixed(gini, 3), { title: exact(gini), missing: missing(gini, giniStatus) }),
      "0 equal · 1 one holder",
    ),
    kpi("HHI", figure(fixed(hhi, 0), { title: exact(hhi), missing: missing(hhi, hhiStatus) }), concentrationWord(hhi)),
  ];
}

function largestLine() {
  const share = summary.largest[0]?.percentage ?? null;
  return share === null ? null : `largest ${percent(share)}`;
}

function unattributedLine() {
  const { percentage } = summary.unattributed;
  if (percentage === null) return null;
  return trend(percentage) === "flat" ? "100 % of supply" : `${percent(percentage)} unattributed`;
}

function concentrationWord(hhi) {
  if (hhi === null) return null;
  const index = Number(hhi); // 0 to 10,000: compared with round numbers only
  if (index < HIGHEST_UNCONCENTRATED) return "unconcentrated";
  return index <= HIGHEST_MODERATE ? "moderately concentrated" : "highly concentrated";
}

page.run();
