/**
 * The index page: the tenant's tokens and wallets, each of which opens its report.
 *
 * A report is shown in a frame inside the page, for which the page is the host: it hands over fresh links and follows
 * the height, as any customer's page would.
 */

import { byId, el, figure, fill, name } from "./dom.js";
import { compact, count, exact, percent, plural, shortened, trend } from "./format.js";
import { Page } from "./page.js";
import { bounded, reasonOf } from "./status.js";

const SEARCH_DELAY_MS = 250;
const LIMIT = 50;

let offset = 0;
let opened = null; // {type, id, frame, leave}

const page = new Page(async (session) => {
  const index = await session.get("/embed/data/index", { q: byId("search").value.trim(), limit: LIMIT, offset });
  document.title = `Reports of ${index.tenant}`;
  fill("title", name(index.tenant));
  drawList("tokens", index.tokens, index.tokenTotal, (token) => tokenEntry(token, index.currency));
  drawList("wallets", index.wallets, index.walletTotal, (wallet) => walletEntry(wallet, index.currency));
  drawPager(Math.max(index.tokenTotal, index.walletTotal));
  byId("content").hidden = false;
  return index.tokenTotal + index.walletTotal === 0 && !byId("search").value ? "empty" : "ready";
});

const NONE = { tokens: "No token.", wallets: "No wallet." };

function drawList(id, entries, total, draw) {
  byId(`${id}-count`).textContent = id === "tokens" ? plural(total, "token") : plural(total, "wallet");
  byId(id).replaceChildren(...(entries.length ? entries.map(draw) : [el("p.none", null, NONE[id])]));
}

function tokenEntry(token, currency) {
  const { holderCount, holderCountStatus, marketCapitalization, marketCapitalizationStatus } = token;
  const holders = figure(holderCount === null ? "" : bounded(plural(holderCount, "holder"), holderCountStatus), {
    missing: holderCount === null ? reasonOf(holderCountStatus) : null,
  });
  const value = money(marketCapitalization, marketCapitalizationStatus, currency);
  return entry(
    "cap-table",
    token,
    [name(token.name ?? token.symbol), token.name && name(token.symbol, { class: "symbol" })],
    holders,
    value,
  );
}

function walletEntry(wallet, currency) {
  const { totalValue, totalValueStatus, change24h } = wallet;
  const change =
    change24h === null
      ? el("span")
      : figure(`${percent(change24h, { signed: true })} in 24 h`, { className: trend(change24h) });
  const title = wallet.name === null ? el("span.name", null, shortened(wallet.ledgerId)) : name(wallet.name);
  return entry("wallet-activity", wallet, [title], change, money(totalValue, totalValueStatus, currency));
}

const money = (value, status, currency) =>
  figure(compact(value, { currency }), {
    title: exact(value, { currency }),
    missing: value === null ? reasonOf(status) : null,
  });

function entry(type, { id, ledger, ledgerId, trackingStatus }, title, ...figures) {
  const where = el(
    "span.sub",
    { title: ledgerId },
    `${ledger} · ${shortened(ledgerId)}${trackingStatus === "enabled" ? "" : " · not tracked"}`,
  );
  const words = el("span.words", null, el("span.entry-title", null, ...title.filter(Boolean)), where);
  return el(
    "button.entry",
    { type: "button", onclick: () => open(type, id) },
    words,
    ...figures,
    el("span.go", { "aria-hidden": true }, "›"),
  );
}

function drawPager(most) {
  byId("pager").hidden = most <= LIMIT;
  byId("page-range").textContent = `${count(offset + 1)}–${count(Math.min(offset + LIMIT, most))} of ${count(most)}`;
  byId("page-previous").disabled = offset === 0;
  byId("page-next").disabled = offset + LIMIT >= most;
}

function listen() {
  let timer = 0;
  const from = (start) => {
    offset = Math.max(0, start);
    return page.run();
  };
  byId("search").addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => from(0), SEARCH_DELAY_MS);
  });
  byId("page-previous").addEventListener("click", () => from(offset - LIMIT));
  byId("page-next").addEventListener("click", () => from(offset + LIMIT));
  window.addEventListener("popstate", close);
  window.addEventListener("message", heard);
}

// --- the report in its frame

const link = (type, id) => page.session.post("/embed/index-links", { type, id });

async function open(type, id) {
  try {
    const { reportUrl } = await link(type, id);
    const address = new URL(reportUrl);
    address.searchParams.set("theme", new URLSearchParams(location.search).get("theme") ?? "auto");
    const frame = el("iframe.report", {
      src: address.pathname + address.search + address.hash,
      title: "Report",
      referrerpolicy: "no-referrer",
    });
    const back = el("button", { type: "button", onclick: () => history.back() }, "‹ All reports");
    history.pushState({ type, id }, "");
    byId("content").hidden = true;
    const viewer = el("section.viewer", { "aria-label": "Report" }, back, frame);
    byId("report").append(viewer);
    opened = { type, id, frame, viewer };
    back.focus();
    window.scrollTo(0, 0);
  } catch (failure) {
    page.fail(failure);
  }
}

function close() {
  opened?.viewer.remove();
  opened = null;
  byId("content").hidden = false;
}

async function heard({ source, data }) {
  if (!opened || source !== opened.frame.contentWindow) return;
  const { type, id, frame } = opened;
  if (data?.type === "report:height") frame.style.height = `${data.height}px`;
  if (data?.type !== "report:token-expired") return;
  try {
    const { reportUrl } = await link(type, id);
    const token = new URLSearchParams(new URL(reportUrl).hash.slice(1)).get("t");
    frame.contentWindow?.postMessage({ type: "report:token", token }, location.origin);
  } catch (failure) {
    page.fail(failure);
  }
}

listen();
page.run();
