/** The wallet report: value of a wallet, its history, holdings, and every movement. */

import { byId, el, explored, figure, fill, isolated, name, press, valued } from "./dom.js";
import { compact, count, day, exact, instant, isShortened, percent, shortened, timeOfDay, trend } from "./format.js";
import { drawIncomplete } from "./incomplete.js";
import { Page } from "./page.js";
import { reasonOf } from "./status.js";
import { drawHead, drawKpis, drawStrip, item, kpi, momentOf, showCollected, whyEmpty } from "./strip.js";
import { Table, firstPage } from "./table.js";
import { drawHoldings } from "./wallet-activity/holdings.js";
import { leftOut, missingHistory } from "./wallet-activity/incomplete.js";
import { columns, fillFilters, inDays, withFees } from "./wallet-activity/rows.js";
import { activitiesOf, drawSeries, foldFees, redrawTimeline } from "./wallet-activity/series.js";

const PATH = "/embed/data/wallet-activity";
const SORT = "-date";
const FEES = { fees: "folded" };

// The charts are the largest part of the page: load them in parallel with the numbers.
const chartsReady = import("./charts/wallet-charts.js");

let summary = null;
let table = null;

const page = new Page(async (session) => {
  const first = table ? null : firstPage(session, PATH, SORT, FEES);
  [summary] = await Promise.all([session.get(`${PATH}/summary`), first]);
  document.title = `${summary.wallet.name ?? shortened(summary.wallet.ledgerId)} wallet activity`;
  table ??= new Table({
    columns: columns(summary),
    path: PATH,
    sort: SORT,
    query: FEES,
    rowsOf: withFees,
    arrange: inDays,
    drop: ["transaction", "counterparty"],
    what: ["activity", "activities"],
    filters: ["filter-type", "filter-token", "filter-direction"],
    onFailure: (failure) => page.fail(failure),
  });
  const collected = summary.asOf.blockNumber !== null;
  drawTop(collected);
  showCollected(collected);
  if (!collected) return "empty";
  fillFilters(summary);
  byId("fees").hidden = summary.foldedFeeCount === 0;
  drawHoldings(summary, chartsReady);
  const [charts] = await Promise.all([chartsReady, table.start(session, summary.dataVersion, await first)]);
  drawSeries(summary, charts, (range) => table.narrow(range));
  return "ready";
});

function drawTop(collected) {
  const { wallet, asOf, isCurrent, range } = summary;
  const last = range.to && new Date(Date.parse(range.to) - 1); // `to` is excluded
  const described = range.from && last ? ` · ${day(range.from)} – ${day(last)}` : "";
  drawHead({
    title: wallet.name === null ? [el("span", null, "Wallet activity")] : [name(wallet.name)],
    subtitle: [
      `Wallet · ${wallet.networkDisplayName} · `,
      // An explorer has no page for keys.
      explored(isShortened(wallet.ledgerId) ? null : wallet.explorer, "address", wallet.ledgerId, "address"),
      described,
    ],
    moment: momentOf(asOf, isCurrent),
    asOf,
  });
  drawIncomplete(collected ? missingHistory(summary) : null); // without any data the page shows the reason instead
  drawStrip({ ...summary, explorer: wallet.explorer, price: collected ? holdings() : null });
  fill("flows-note", leftOut(summary));
  if (collected) drawKpis(...tiles());
  else fill("nothing", el("h2", null, "No activity to show yet"), el("p", null, whyEmpty(summary.coverage)));
}

function holdings() {
  const { holdingsComplete, holdingsFrom } = summary;
  const words = holdingsComplete ? "Complete" : holdingsFrom === null ? "Incomplete" : `From ${day(holdingsFrom)}`;
  const why = holdingsComplete ? "since the wallet's first block" : "history does not reach the wallet's first block";
  return item(
    "price",
    "Holdings",
    el("span.figure", null, words),
    el("span.sub", null, why),
  );
}

function tiles() {
  const { currency, totalValue, totalValueStatus, flows, counterpartyCount, lastActivityAt } = summary;
  const inOut =
    flows.net === null ? null : `in ${compact(flows.in, { currency })} · out ${compact(flows.out, { currency })}`;
  return [
    kpi("Wallet value", valued(totalValue, totalValueStatus, { currency }, compact), changeOf(summary)),
    kpi(
      flows.isComplete ? "Net flow" : "Net flow (incomplete)",
      valued(flows.net, flows.status, { currency, signed: true }, compact),
      inOut,
    ),
    kpi("Activities", figure(count(activitiesOf(summary))), summary.range.from && `since ${day(summary.range.from)}`),
    kpi("Counterparties", figure(count(counterpartyCount)), "different addresses"),
    kpi(
      "Last activity",
      figure(lastActivityAt ? day(lastActivityAt) : "", {
        title: instant(lastActivityAt),
        missing: lastActivityAt ? null : "None",
      }),
      lastActivityAt && timeOfDay(lastActivityAt),
    ),
  ];
}

function changeOf({ change24h, change24hStatus, change24hOmitted }) {
  if (change24h === null) return `24 h: ${reasonOf(change24hStatus).toLowerCase()}`;
  const shown = percent(change24h, { signed: true });
  const title = change24hOmitted.length ? `Without ${change24hOmitted.map(isolated).join(", ")}` : null;
  return el(
    "span",
    null,
    figure(shown, { title: `${exact(change24h)} %`, className: trend(change24h) }),
    " in 24 h",
    title && el("span", { title }, " (part)"),
  );
}

press("fees", (chosen) => {
  foldFees(chosen === "folded");
  drawKpis(...tiles());
  redrawTimeline();
  table.narrow({ fees: chosen });
});

page.run();
