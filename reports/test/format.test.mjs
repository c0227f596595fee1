import assert from "node:assert/strict";
import { test } from "node:test";

import { parse, round, split, sum } from "../src/decimal.js";
import { amount, axisDay, compact, count, exact, fixed, instant, moment, percent, shortened, tick, useLocale } from "../src/format.js";

const plain = (text) => text.replace(/[\u00a0\u202f]/g, " ");
const MAX = (2n ** 256n - 1n).toString();

test("every digit of the largest amount is shown", () => {
  useLocale("en-US");
  assert.equal(exact(MAX).replaceAll(",", ""), MAX);
  const fine = `0.${"0".repeat(76)}1`;
  assert.equal(exact(fine), fine);
  assert.equal(exact(`-${MAX}.000000000000000001`).replaceAll(",", ""), `−${MAX}.000000000000000001`);
});

test("numbers read as the locale writes them", () => {
  useLocale("de-DE");
  assert.equal(amount("1234567.891"), "1.234.567,89");
  assert.equal(plain(amount("24960484.405", { currency: "USD" })), "24.960.484,40 $");
  assert.equal(plain(percent("13.565480660000")), "13,57 %");
  useLocale("en-IN");
  assert.equal(amount("123456789.5"), "12,34,56,789.50");
  useLocale("ar-EG-u-nu-arab");
  assert.equal(amount("1234.5"), "١٬٢٣٤٫٥٠");
});

test("amounts keep two decimals, and four digits below one", () => {
  useLocale("en-US");
  assert.equal(amount("5"), "5.00");
  assert.equal(amount("5", { decimals: 0 }), "5");
  assert.equal(amount("0"), "0.00");
  assert.equal(amount("0.5"), "0.50");
  assert.equal(amount("0.000123456"), "0.0001235");
  assert.equal(amount("0.0000000000012"), "1.2E−12");
  assert.equal(amount("2.675"), "2.68");
  assert.equal(amount("2.665"), "2.66");
  assert.equal(amount("999999999999999999.99"), "999,999,999,999,999,999.99");
  assert.equal(amount(MAX), "1.158E77");
});

test("signs stand where the locale puts them, below one as well", () => {
  useLocale("en-US");
  assert.equal(amount("0.25", { signed: true }), "+0.25");
  assert.equal(amount("-0.25", { signed: true, currency: "USD" }), "−$0.25");
  assert.equal(amount("0", { signed: true }), "0.00");
  assert.equal(amount("-1234.5", { currency: "USD" }), "−$1,234.50");
  assert.equal(amount("1.5", { currency: "WBTC" }), "1.50 WBTC");
});

test("no tick repeats the one before it", () => {
  useLocale("en-US");
  const days = ["2026-06-28", "2026-07-01", "2026-07-06", "2026-07-15", "2027-01-01"].map((day) => Date.parse(day));
  assert.deepEqual(days.map(axisDay), ["Jun 28", "Jul", "6", "15", "2027"]);
  assert.deepEqual([24_960_100, 24_960_200].map((value) => tick(value, { digits: 6 })), ["24.9601M", "24.9602M"]);
});

test("the end of a day is told as the day", () => {
  useLocale("en-US");
  assert.equal(moment("2026-01-31T23:59:59.999999Z"), "Jan 31, 2026");
  assert.equal(moment("2026-01-31T23:59:59Z"), "Jan 31, 2026, 23:59 UTC");
  assert.equal(moment("2026-02-01T00:00:00Z"), "Feb 1, 2026, 00:00 UTC");
});

test("headlines are short and rounded from the digits", () => {
  useLocale("en-US");
  assert.equal(compact("184000000", { currency: "USD" }), "$184M");
  assert.equal(compact("100000000"), "100M");
  assert.equal(compact("348864.123", { currency: "USD" }), "$348.9K");
  assert.equal(compact("1234.5"), "1,234.50");
  assert.equal(compact("3200"), "3,200");
  assert.equal(compact("0"), "0");
  assert.equal(compact("0.00001234567"), "0.00001235");
  assert.equal(compact(MAX), "1.158E77");
  assert.equal(compact("-26450", { currency: "USD", signed: true }), "−$26.45K");
  assert.equal(compact("0.0000000001"), "1E−10");
  assert.equal(compact("99999.9999"), "100K");
});

test("short numbers of a column have two decimals each", () => {
  useLocale("en-US");
  const money = (text) => compact(text, { currency: "USD", isEven: true });
  const texts = ["2460000000000", "1043123456.78", "60100000000", "48690000000", "999999.9", "12345", "1234.5", "0"];
  assert.deepEqual(texts.map(money), [
    "$2.46T",
    "$1.04B",
    "$60.10B",
    "$48.69B",
    "$1.00M",
    "$12.34K",
    "$1,234.50",
    "$0.00",
  ]);
  assert.equal(money("-26450"), "−$26.45K");
});

test("a share that is not zero is never shown as zero", () => {
  useLocale("en-US");
  assert.equal(percent("0.000000000001"), "<0.01%");
  assert.equal(percent("-0.001"), ">−0.01%");
  assert.equal(percent("0"), "0.00%");
  assert.equal(percent("100.000000000000"), "100.00%");
  assert.equal(percent("-12.345"), "−12.34%");
  assert.equal(percent("29.98", { signed: true }), "+29.98%");
});

test("missing is a dash, and anything but a decimal is refused", () => {
  for (const shown of [exact, amount, compact, percent]) assert.equal(shown(null), "—");
  for (const wrong of [1.5, "1e5", "", "NaN", undefined]) assert.throws(() => exact(wrong), TypeError);
});

test("rounding is half to even on digits of any length", () => {
  const rounded = (text, scale) => split(round(parse(text), scale));
  assert.deepEqual(rounded("0.125", 2), { whole: "0", fraction: "12" });
  assert.deepEqual(rounded("0.135", 2), { whole: "0", fraction: "14" });
  assert.deepEqual(rounded("0.1250000000000000000000000000001", 2), { whole: "0", fraction: "13" });
  assert.deepEqual(rounded("15", -1), { whole: "20", fraction: "" });
});

test("sums are exact", () => {
  assert.equal(sum(["0.1", "0.2"]), "0.3");
  assert.equal(sum([MAX, "0.000000000000000001", "-1"]), `${(2n ** 256n - 2n).toString()}.000000000000000001`);
  assert.equal(sum([]), "0");
});

test("times are UTC and say so", () => {
  useLocale("en-US");
  assert.equal(plain(instant("2026-11-20T00:00:00Z")), "Nov 20, 2026, 00:00 UTC");
  assert.equal(count(1234567), "1,234,567");
  assert.equal(fixed("0.897123", 3), "0.897");
  assert.equal(shortened("0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48"), "0xA0b869…06eB48");
  assert.equal(shortened("native"), "native");
  assert.equal(shortened("wpkh(xpub6ER…RcEL/<0;1>/*)#h4mk3q39"), "wpkh(xpub6ER…RcEL/<0;1>/*)#h4mk3q39");
});
