import assert from "node:assert/strict";
import { test } from "node:test";

import { useLocale } from "../src/format.js";
import { kindOf } from "../src/token.js";
import { leftOut } from "../src/wallet-activity/incomplete.js";
import { inDays, otherSide } from "../src/wallet-activity/rows.js";

const at = (date, status = "Finalized") => ({ date, status });
const told = (rows, sort) => inDays(rows, sort).map(({ line, date }) => line ?? date.slice(8, 13));

test("each day stands once above its rows, and one line ends what is not final", () => {
  useLocale("en-US");
  const rows = [at("2026-11-24T10:00:00Z", "Confirmed"), at("2026-11-24T09:00:00Z"), at("2026-11-23T08:00:00Z")];
  const down = ["Nov 24, 2026", "24T10", "Above this line: not final yet", "24T09", "Nov 23, 2026", "23T08"];
  assert.deepEqual(told(rows, "-date"), down);
  const up = ["Nov 23, 2026", "23T08", "Nov 24, 2026", "24T09", "Below this line: not final yet", "24T10"];
  assert.deepEqual(told([...rows].reverse(), "date"), up);
  assert.equal(inDays(rows, "-value"), rows);
});

test("a page of rows that are all not final ends with the line", () => {
  const rows = [at("2026-11-24T10:00:00Z", "Confirmed"), at(null, "Failed"), at("2026-11-24T09:00:00Z", "Confirmed")];
  assert.equal(inDays(rows, "-date").at(-1).kind, "tail");
  assert.deepEqual(inDays([], "-date"), []);
});

test("several counterparties show their number, and list their addresses on hover", () => {
  useLocale("en-US");
  const row = (counterpartyStatus, counterpartyCount, counterparties) => ({
    counterpartyStatus,
    counterpartyCount,
    counterparties,
  });
  assert.deepEqual(otherSide(row("Several", 2, ["a", "b"])), { shown: "2 counterparties", title: "a\nb" });
  assert.deepEqual(otherSide(row("Several", 1200, ["a", "b"])), {
    shown: "1,200 counterparties",
    title: "a\nb\n1,198 more",
  });
  assert.deepEqual(otherSide(row("None", 0, [])), { shown: "—", title: null });
  assert.equal(otherSide(row("NotRead", null, [])).shown, "Not read");
});

test("a wallet that only has a name is called by it, and no name is repeated as a kind", () => {
  const wallet = (name, walletTrackingStatus) => kindOf({ name, holderType: "Wallet", walletTrackingStatus });
  assert.equal(wallet("Jane Doe", "disabled"), null);
  assert.equal(wallet("Jane Doe", "enabled"), "tracked wallet");
  assert.equal(wallet(null, "enabled"), "tracked wallet");
  assert.equal(wallet("Cold Wallet 3", "enabled"), null);
  assert.equal(kindOf({ name: null, holderType: "Burn" }), "burn address");
  assert.equal(kindOf({ name: null, holderType: null }), null);
});

test("what the net flow leaves out is named with the reason", () => {
  useLocale("en-US");
  const one = (symbol, status, count, pricedFrom = null) => ({ token: { symbol, ledgerId: "native" }, status, count, pricedFrom });
  const told = (rows, complete = true) => leftOut({ flows: { net: "1", leftOut: rows }, coverage: { complete } });
  assert.equal(told([]), "");
  assert.equal(told([], false), "The net flow leaves out the time that is not collected.");
  const many = [
    one("GOLD", "NoPrice", 45, "2026-11-14T00:00:00Z"),
    one("CASH", "NoPair", 12),
    one("RELIC", "NoPrice", 3),
    one("TAX", "StalePrice", 1),
  ];
  assert.equal(
    told(many),
    "Movements that the net flow leaves out: GOLD, 45 (no price before Nov 14, 2026); CASH, 12 (no price pair); " +
      "RELIC, 3 (no price at the time); and 1 more.",
  );
});
