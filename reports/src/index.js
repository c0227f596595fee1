/**
 * The index page: the tenant's tokens and wallets, with a report for each.
 *
 * The page is the host of the report, like any customer's page: it shows the report in a frame, supplies fresh links
 * and adjusts the height.
 */

import { byId, el, figure, fill, name, press } from "./dom.js";
import { compact, count, exact, percent, plural, shortened, trend } from "./format.js";
import { Page } from "./page.js";
import { bounded, reasonOf } from "./status.js";
import { titleOf } from "./token.js";

const SEARCH_DELAY_MS = 250;
const LIMIT = 50;

const HEADS = {
  tokens: [
    ["name", "Token"],
    ["-holders", "Holders"],
    ["-value", "Market value"],
  ],
  wallets: [
    ["name", "Wallet"],
    ["-change", "Change in 24 h"],
    ["-value", "Value"],
  ],
};

let offset = 0;
let tracked = "enabled";
const sorts = { tokens: "-value", wallets: "-value" };
let opened = null; // {request, frame, viewer}: request of the link of the report in the frame

const page = new Page(async (session) => {
  const index = await session.get("/embed/data/index", {
    q: byId("search").value.trim(),
    trackingStatus: tracked,
    tokenSort: sorts.tokens,
    walletSort: sorts.wallets,
    limit: LIMIT,
    offset,
  });
  document.title = `Reports of ${index.tenant}`;
  fill("title", name(index.tenant));
  const { currency } = index;
  drawList("tokens", index.tokens, index.tokenTotal, (token) => tokenEntry(token, currency));
  drawList("wallets", index.wallets, index.walletTotal, (wallet) => walletEntry(wallet, currency));
  drawSum("tokens", index.tokenValue, currency);
  drawSum("wallets", index.walletValue, currency);
  drawPager(Math.max(index.tokenTotal, index.walletTotal));
  byId("content").hidden = false;
  return index.tokenTotal + index.walletTotal === 0 && !byId("search").value ? "empty" : "ready";
});

const none = (what) => (tracked ? `No tracked ${what}.` : `No ${what}.`);
const NONE = { tokens: () => none("token"), wallets: () => none("wallet") };

function drawList(id, entries, total, draw) {
  drawHeads(id);
  byId(`${id}-count`).textContent = id === "tokens" ? plural(total, "token") : plural(total, "wallet");
  byId(id).replaceChildren(...(entries.length ? entries.map(draw) : [el("p.none", null, NONE[id]())]));
}

function drawHeads(id) {
  const cells = HEADS[id].map(([first, label]) => {
    const column = first.replace("-", "");
    const isSorted = sorts[id].replace("-", "") === column;
    const direction = sorts[id].startsWith("-") ? "descending" : "ascending";
    return el(
      "button",
      {
        type: "button",
        class: isSorted ? direction : null,
        "aria-label": `Sort by ${label}${isSorted ? `, sorted ${direction}` : ""}`,
        onclick: () => sortBy(id, column, first),
      },
      el("span", null, label),
      el("i.arrow", { "aria-hidden": true }),
    );
  });
  byId(`${id}-head`).replaceChildren(...cells, el("span"));
}

async function sortBy(id, column, first) {
  const other = first.startsWith("-") ? column : `-${column}`;
  sorts[id] = sorts[id] === first ? other : first;
  offset = 0;
  await page.run();
  byId(`${id}-head`).children[HEADS[id].findIndex(([each]) => each === first)].focus();
}

function drawSum(id, value, currency) {
  byId(`${id}-sum`).hidden = value === null;
  const shown = figure(compact(value, { currency, isEven: true }), { title: exact(value, { currency }) });
  byId(`${id}-sum`).replaceChildren(el("span", null, "Total (priced only)"), el("span"), shown, el("span"));
}

function tokenEntry(token, currency) {
  const { holderCount, holderCountStatus, marketCapitalization, marketCapitalizationStatus } = token;
  const holders = figure(holderCount === null ? "" : bounded(count(holderCount), holderCountStatus), {
    missing: holderCount === null ? reasonOf(holderCountStatus) : null,
  });
  const value = money(marketCapitalization, marketCapitalizationStatus, currency);
  return entry(
    "cap-table",
    token,
    titleOf(token),
    holders,
    value,
  );
}

function walletEntry(wallet, currency) {
  const { totalValue, totalValueStatus, change24h } = wallet;
  const change =
    change24h === null
      ? el("span")
      : figure(percent(change24h, { signed: true }), { className: trend(change24h) });
  const title = wallet.name === null ? el("span.name", null, shortened(wallet.ledgerId)) : name(wallet.name);
  return entry("wallet-activity", wallet, [title], change, money(totalValue, totalValueStatus, currency));
}

const money = (value, status, currency) =>
  figure(compact(value, { currency, isEven: true }), {
    title: exact(value, { currency }),
    missing: value === null ? reasonOf(status === "NotCovered" ? "NotYetCollected" : status) : null,
  });

function entry(type, { id, ledger, ledgerId, trackingStatus }, title, ...figures) {
  const where = el(
    "span.sub",
    { title: ledgerId },
    `${ledger} · ${shortened(ledgerId)}${trackingStatus === "enabled" ? "" : " · not tracked"}`,
  );
  const words = el("span.words", null, el("span.entry-title", null, ...title), where);
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
  press("tracked", (chosen) => {
    tracked = chosen;
    from(0);
  });
  byId("page-previous").addEventListener("click", () => from(offset - LIMIT));
  byId("page-next").addEventListener("click", () => from(offset + LIMIT));
  window.addEventListener("popstate", close);
  window.addEventListener("message", heard);
}

// --- the report in its frame

const link = (request) => page.session.post("/embed/index-links", request);

const OF_TOKEN = [
  ["Cap table", { type: "cap-table" }],
  ["Changes since last month's end", { type: "cap-table-changes", from: "last-month-end" }],
];

async function frameOf(request) {
  const address = new URL((await link(request)).reportUrl);
  address.searchParams.set("theme", new URLSearchParams(location.search).get("theme") ?? "auto");
  return el("iframe.report", {
    src: address.pathname + address.search + address.hash,
    title: "Report",
    referrerpolicy: "no-referrer",
  });
}

async function open(type, id) {
  const request = { type, id };
  try {
    const frame = await frameOf(request);
    const back = el("button", { type: "button", onclick: () => history.back() }, "‹ All reports");
    const head = el("div.viewer-head", null, back, type === "cap-table" && reportsOfToken(id));
    history.pushState(request, "");
    byId("content").hidden = true;
    const viewer = el("section.viewer", { "aria-label": "Report" }, head, frame);
    byId("report").append(viewer);
    opened = { request, frame, viewer };
    back.focus();
    window.scrollTo(0, 0);
  } catch (failure) {
    page.fail(failure);
  }
}

function reportsOfToken(id) {
  const buttons = OF_TOKEN.map(([label, rest], index) =>
    el("button", { type: "button", "aria-pressed": String(index === 0), onclick: () => turnTo({ ...rest, id }, index) }, label),
  );
  return el("div.switch", { role: "group", "aria-label": "Report of the token" }, ...buttons);
}

// A new frame: another address in the old one would add a step to the browser's history.
async function turnTo(request, index) {
  const { viewer } = opened;
  const buttons = [...viewer.querySelectorAll(".switch button")];
  const isPressed = () => buttons[index].getAttribute("aria-pressed") === "true";
  if (isPressed()) return;
  for (const [place, button] of buttons.entries()) button.setAttribute("aria-pressed", String(place === index));
  try {
    const frame = await frameOf(request);
    if (opened?.viewer !== viewer || !isPressed()) return; // closed or switched back in the meantime
    opened.frame.replaceWith(frame);
    Object.assign(opened, { request, frame });
  } catch (failure) {
    if (opened?.viewer !== viewer || !isPressed()) return;
    close();
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
  const { request, frame } = opened;
  if (data?.type === "report:height") frame.style.height = `${data.height}px`;
  if (data?.type !== "report:token-expired") return;
  try {
    const { reportUrl } = await link(request);
    const token = new URLSearchParams(new URL(reportUrl).hash.slice(1)).get("t");
    frame.contentWindow?.postMessage({ type: "report:token", token }, location.origin);
  } catch (failure) {
    page.fail(failure);
  }
}

listen();
page.run();
