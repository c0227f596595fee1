/** The report of changes between a token's cap tables at two moments. */

import { columns } from "./cap-table-changes/rows.js";
import { notCollectedBetween } from "./cap-table-changes/incomplete.js";
import { negated, sum } from "./decimal.js";
import { byId, el, figure, fill, valued } from "./dom.js";
import { compact, count, exact, trend } from "./format.js";
import { drawIncomplete } from "./incomplete.js";
import { Page } from "./page.js";
import { reasonOf } from "./status.js";
import { drawHead, drawKpis, drawStripBetween, kpi, momentsOf } from "./strip.js";
import { Table, firstPage } from "./table.js";
import { subtitleOf, titleOf, unitOf } from "./token.js";

const PATH = "/embed/data/cap-table-changes";
const SORT = "-difference";

let summary = null;
let table = null;

const page = new Page(async (session) => {
  const first = table ? null : firstPage(session, PATH, SORT);
  [summary] = await Promise.all([session.get(`${PATH}/summary`), first]);
  document.title = `${summary.token.name ?? summary.token.symbol} cap table changes`;
  table ??= new Table({
    columns: columns(summary),
    path: PATH,
    sort: SORT,
    what: ["holder", "holders"],
    filters: ["filter-change"],
    drop: ["shares", "bar", "kind", "before"],
    onFailure: (failure) => page.fail(failure),
  });
  drawTop();
  await table.start(session, summary.dataVersion, await first);
  return "ready";
});

function drawTop() {
  const { token, from, to, fromStatus, toStatus, isCurrent, totals } = summary;
  drawHead({
    title: titleOf(token),
    subtitle: subtitleOf("Cap table changes", token),
    moment: momentsOf(from, to, isCurrent),
    asOf: to,
    asOfStatus: from.blockNumber === null ? fromStatus : toStatus,
    from,
  });
  drawIncomplete(notCollectedBetween(summary));
  drawStripBetween({ ...summary, explorer: token.explorer });
  drawKpis(...tiles());
  fill("unit", `All holders whose balance differs, in ${unitOf(token)}`);
  const differs = totals.new + totals.gone + totals.changed > 0;
  byId("rows").hidden = !differs;
  byId("nothing").hidden = differs;
}

function tiles() {
  const { token, totals } = summary;
  const { holdersBefore, holdersAfter, supplyBefore, supplyAfter, supplyBeforeStatus, supplyAfterStatus } = totals;
  const supply = valued(supplyAfter, supplyAfterStatus, {}, compact);
  return [
    kpi(
      "Holders after",
      figure(count(holdersAfter)),
      before(count(holdersBefore), String(holdersAfter - holdersBefore), exact),
    ),
    kpi("New", figure(count(totals.new)), "in the later cap table only"),
    kpi("Gone", figure(count(totals.gone)), "in the earlier one alone"),
    kpi("Changed", figure(count(totals.changed)), "in both, different balance"),
    kpi(
      `Total supply after (${unitOf(token)})`,
      supply,
      supplyBefore === null
        ? `before: ${reasonOf(supplyBeforeStatus).toLowerCase()}`
        : before(compact(supplyBefore), supplyAfter && sum([supplyAfter, negated(supplyBefore)]), compact),
    ),
  ];
}

function before(shown, difference, show) {
  if (difference === null) return `${shown} before`;
  const [style, direction] = [{ signed: true }, trend(difference)];
  const change = figure(show(difference, style), { title: exact(difference, style), className: direction });
  return el("span", null, `${shown} before · `, direction === "flat" ? "unchanged" : change);
}

page.run();
