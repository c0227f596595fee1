/**
 * Numbers and times in the format of a locale.
 *
 * Intl gives grouping, signs and the position of the currency; the digits come from the decimal text, not from a float.
 * Displayed numbers may be rounded (half to even); `exact` gives every digit, for titles and tables of data.
 */

import { magnitude, parse, round, sign, split } from "./decimal.js";

/** Placeholder of a missing number; a word about the reason follows it. */
export const MISSING = "—";

// Orders of magnitude from which, and below which, digits no longer help a reader.
const SCIENTIFIC_FROM = 15; // of short forms: 10^15 is past "999T"
const SCIENTIFIC_AMOUNT_FROM = 18;
const SCIENTIFIC_BELOW = -9;

let locale = undefined;

/**
 * Set the locale of all later output.
 * @param {readonly string[] | string | undefined} name BCP 47; undefined for the browser's
 */
export function useLocale(name) {
  locale = name;
  formats.clear();
}

const formats = new Map();

function format(options) {
  const key = JSON.stringify(options);
  if (!formats.has(key)) formats.set(key, new Intl.NumberFormat(locale, options));
  return formats.get(key);
}

function localDigits(text) {
  const digits = format({ useGrouping: false, minimumIntegerDigits: 1 });
  return text.replace(/\d/g, (digit) => digits.format(Number(digit)));
}

function decimalPoint() {
  return format({ minimumFractionDigits: 1 })
    .formatToParts(0)
    .find((part) => part.type === "decimal").value;
}

// The pattern (sign, grouping, currency) comes from Intl for the integer part, an exact BigInt; the fraction follows
// its last digit. Zero has no sign there, so 1 replaces the 0 of 0.5.
function compose(value, options) {
  const { whole, fraction } = split(value);
  const standsIn = BigInt(whole) === 0n && value.digits !== 0n;
  const integer = standsIn ? 1n : BigInt(whole);
  const formatter = format({ ...options, minimumFractionDigits: 0, maximumFractionDigits: 0 });
  const parts = formatter.formatToParts(value.negative ? -integer : integer);
  const last = parts.findLastIndex((part) => part.type === "integer");
  const tail = fraction ? decimalPoint() + localDigits(fraction) : "";
  const written = (part) => (standsIn && part.type === "integer" ? localDigits("0") : part.value.replace("-", "−"));
  return parts.map((part, index) => written(part) + (index === last ? tail : "")).join("");
}

function padded(value, minimum) {
  if (value.scale >= minimum) return value;
  return { ...value, digits: value.digits * 10n ** BigInt(minimum - value.scale), scale: minimum };
}

function trimmed(value, minimum) {
  let { digits, scale } = value;
  while (scale > minimum && digits % 10n === 0n) {
    digits /= 10n;
    scale -= 1;
  }
  return { ...value, digits, scale };
}

// Two decimals from 1 on; below 1 four significant digits, so that a small holding is not shown as zero.
function readable(value, significant = 4) {
  const order = magnitude(value);
  if (value.digits === 0n || order >= 0) return trimmed(round(value, 2), 2);
  const scale = significant - 1 - order;
  return trimmed(round(value, scale), 2);
}

/**
 * @typedef {object} Style
 * @property {string} [currency] symbol of the unit, such as USD
 * @property {boolean} [signed] a plus sign before positive numbers
 */

function options(style) {
  const base = style.signed ? { signDisplay: "exceptZero" } : {};
  return isoCurrency(style.currency)
    ? { ...base, style: "currency", currency: style.currency, currencyDisplay: "narrowSymbol" }
    : base;
}

function isoCurrency(symbol) {
  return symbol !== undefined && symbol !== null && currencies().has(symbol);
}

let known = null;

function currencies() {
  known ??= new Set(Intl.supportedValuesOf("currency"));
  return known;
}

// A unit that is no currency for Intl (BTC, EURC) follows the number.
function unit(text, style) {
  return style.currency && !isoCurrency(style.currency) ? `${text} ${style.currency}` : text;
}

/**
 * Every digit.
 * @param {string | null} text plain decimal
 * @param {Style} [style]
 */
export function exact(text, style = {}) {
  if (text === null) return MISSING;
  return unit(compose(parse(text), options(style)), style);
}

/**
 * For a column of amounts: two decimals, four significant digits below one, scientific below 10^-9 and from 10^18.
 * @param {string | null} text plain decimal
 * @param {Style & {decimals?: number | null}} [style] `decimals` of the token, if fewer than two
 */
export function amount(text, style = {}) {
  if (text === null) return MISSING;
  const value = parse(text);
  if (isExtreme(value, SCIENTIFIC_AMOUNT_FROM)) return unit(scientific(value, style), style);
  const fewest = Math.min(2, style.decimals ?? 2);
  return unit(compose(padded(trimmed(readable(value), fewest), fewest), options(style)), style);
}

/**
 * Short, for headlines: 184.2M.
 * @param {string | null} text plain decimal
 * @param {Style & {isEven?: boolean}} [style] `isEven`: two decimals each, for a column: 184.20M, 1.04B
 */
export function compact(text, { isEven = false, ...style } = {}) {
  if (text === null) return MISSING;
  const value = parse(text);
  const order = magnitude(value);
  if (isExtreme(value, SCIENTIFIC_FROM)) return unit(scientific(value, style), style);
  if (isEven && order < 4) return amount(text, style);
  if (order < 4) return unit(compose(order < 0 ? trimmed(readable(value), 0) : short(value), options(style)), style);
  // After rounding few digits are left: a float is exact enough, and Intl finds the letter.
  const rounded = round(value, Math.min(0, (isEven ? 9 : 3) - order));
  const number = Number(rounded.digits) * (rounded.negative ? -1 : 1);
  const digits = isEven
    ? { minimumFractionDigits: 2, maximumFractionDigits: 2, roundingMode: "halfEven" }
    : { maximumSignificantDigits: 4 };
  const short4 = { ...options(style), notation: "compact", ...digits };
  return unit(format(short4).format(number).replace("-", "−"), style);
}

const isExtreme = (value, from) =>
  value.digits !== 0n && (magnitude(value) >= from || magnitude(value) < SCIENTIFIC_BELOW);

function short(value) {
  const rounded = trimmed(round(value, 2), 0);
  return rounded.scale === 1 ? padded(rounded, 2) : rounded;
}

function scientific(value, style) {
  const order = magnitude(value);
  const { digits, negative, scale } = round(value, 3 - order);
  const first = digits.toString().slice(0, 4);
  const exponent = digits.toString().length - first.length - scale;
  const four = { ...options(style), notation: "scientific", maximumSignificantDigits: 4 };
  return format(four)
    .format(Number(`${negative ? "-" : ""}${first}e${exponent}`))
    .replaceAll("-", "−");
}

/**
 * A percentage with two decimals; smaller ones are "<0.01%", never 0.00%.
 * @param {string | null} text plain decimal, 0 to 100
 * @param {{signed?: boolean}} [style]
 */
export function percent(text, style = {}) {
  if (text === null) return MISSING;
  const value = parse(text);
  const rounded = padded(round(value, 2), 2);
  if (value.digits !== 0n && rounded.digits === 0n) {
    const edge = percentOf({ negative: value.negative, digits: 1n, scale: 2 }, style);
    return value.negative ? `>${edge}` : `<${edge}`;
  }
  return percentOf(rounded, style);
}

// Intl's percent style multiplies by 100; the text is in percent already, so its sign comes from the pattern of zero.
function percentOf(value, style) {
  const number = compose(value, style.signed ? { signDisplay: "exceptZero" } : {});
  const [before, after] = pattern();
  return before + number + after;
}

function pattern() {
  const parts = format({ style: "percent" }).formatToParts(0);
  const at = parts.findIndex((part) => part.type === "integer");
  const text = (list) => list.map((part) => part.value).join("");
  return [text(parts.slice(0, at)), text(parts.slice(at + 1))];
}

/** @param {number} value of a tick, 0 to 100 @returns {string} for an axis */
export function percentTick(value) {
  const [before, after] = pattern();
  return before + tick(value) + after;
}

/**
 * A whole number.
 * @param {number | null} value counts and blocks, below 2^53
 */
export function count(value) {
  return value === null ? MISSING : format({ maximumFractionDigits: 0 }).format(value);
}

/** "1 gap", "2 gaps". @param {number} number @param {string} one @param {string} [many] */
export const plural = (number, one, many = `${one}s`) => `${count(number)} ${number === 1 ? one : many}`;

/**
 * A number of few digits, such as an index, with exactly that many decimals.
 * @param {string | null} text plain decimal
 * @param {number} decimals
 */
export function fixed(text, decimals) {
  return text === null ? MISSING : compose(padded(round(parse(text), decimals), decimals), {});
}

/**
 * Label of an axis at a tick, which ECharts gives as a float.
 * @param {number} value
 * @param {Style & {digits?: number}} [style] `digits`: significant ones, for values that lie close together
 */
export function tick(value, { digits = 4, ...style } = {}) {
  const text = format({ ...options(style), notation: "compact", maximumSignificantDigits: digits }).format(value);
  return unit(text.replace("-", "−"), style);
}

const DAY = { timeZone: "UTC", year: "numeric", month: "short", day: "numeric" };

function dates(options) {
  const key = `date ${JSON.stringify(options)}`;
  if (!formats.has(key)) formats.set(key, new Intl.DateTimeFormat(locale, options));
  return formats.get(key);
}

/**
 * @param {string | number | Date | null} when instant, or day as `2026-01-31`
 * @returns {string} the day, UTC
 */
export function day(when) {
  return when === null ? MISSING : dates(DAY).format(new Date(when));
}

/**
 * @param {string | null} when instant
 * @param {{seconds?: boolean}} [detail]
 * @returns {string} day and time with the word UTC
 */
export function instant(when, { seconds = false } = {}) {
  return when === null ? MISSING : `${dateTime(when, { seconds })} UTC`;
}

/**
 * The same without UTC, below a heading that has it.
 * @param {string | null} when instant
 * @param {{seconds?: boolean}} [detail]
 */
export function dateTime(when, { seconds = false } = {}) {
  if (when === null) return MISSING;
  const time = { hour: "2-digit", minute: "2-digit", ...(seconds ? { second: "2-digit" } : {}) };
  return dates({ ...DAY, ...time, hourCycle: "h23" }).format(new Date(when));
}

/** @param {string} at instant @returns {boolean} whether it is the last moment of a day, UTC */
export const isDayEnd = (at) => /T23:59:59\.9+Z$/.test(at);

/** @param {string} at instant @returns {string} the day for its last moment, otherwise day and time; UTC */
export const moment = (at) => (isDayEnd(at) ? day(at) : instant(at));

/** @param {string} when instant @returns {string} the time of day with the word UTC */
export const timeOfDay = (when) => `${clock(when)} UTC`;

/** @param {string} when instant @returns {string} the time of day without UTC, below a heading that has it */
export const clock = (when) =>
  dates({ timeZone: "UTC", hour: "2-digit", minute: "2-digit", hourCycle: "h23" }).format(new Date(when));

/**
 * Label of a time axis: year, month or day; the first label includes the month.
 * @param {number} when milliseconds
 * @param {number} [index] of the tick
 */
export function axisDay(when, index = 0) {
  const at = new Date(when);
  const first = at.getUTCDate() === 1;
  const year = first && at.getUTCMonth() === 0;
  const day = index === 0 ? { month: "short", day: "numeric" } : { day: "numeric" };
  const options = year ? { year: "numeric" } : first ? { month: "short" } : day;
  return dates({ timeZone: "UTC", ...options }).format(at);
}

/**
 * Returns true if the API shortened the text, such as the keys of a wallet. Such a text is no address.
 * @param {string} text
 */
export const isShortened = (text) => text.includes("…");

/**
 * An address or a hash without its middle.
 * @param {string} text
 */
export function shortened(text) {
  return text.length > 18 && !isShortened(text) ? `${text.slice(0, 8)}…${text.slice(-6)}` : text;
}

/**
 * Colour of a change.
 * @param {string | null} text plain decimal
 * @returns {"up" | "down" | "flat"}
 */
export function trend(text) {
  const direction = text === null ? 0 : sign(text);
  return direction > 0 ? "up" : direction < 0 ? "down" : "flat";
}
