/**
 * Exact decimals as text: the format of every quantity, price and value of the data routes.
 *
 * No float is involved: a decimal is `{negative, digits, scale}` with the value digits / 10^scale.
 */

const DECIMAL = /^(-?)(\d+)(?:\.(\d+))?$/;

/**
 * @typedef {{negative: boolean, digits: bigint, scale: number}} Decimal
 */

/**
 * Read a decimal.
 * @param {string} text plain decimal, no exponent
 * @returns {Decimal}
 * @throws {TypeError} for anything else, including floats
 */
export function parse(text) {
  const match = typeof text === "string" ? DECIMAL.exec(text) : null;
  if (!match) throw new TypeError(`Not a decimal: ${text}`);
  const [, sign, whole, fraction = ""] = match;
  const digits = BigInt(whole + fraction);
  return { negative: sign === "-" && digits !== 0n, digits, scale: fraction.length };
}

/**
 * Round half to even.
 * @param {Decimal} value
 * @param {number} scale fraction digits to keep; negative rounds to tens, hundreds, ...
 * @returns {Decimal} with at most that scale, and a scale of 0 or more
 */
export function round(value, scale) {
  if (value.scale <= scale) return value;
  const unit = 10n ** BigInt(value.scale - scale);
  const rest = (value.digits % unit) * 2n;
  let kept = value.digits / unit;
  if (rest > unit || (rest === unit && kept % 2n === 1n)) kept += 1n;
  const digits = scale < 0 ? kept * 10n ** BigInt(-scale) : kept;
  return { negative: value.negative && digits !== 0n, digits, scale: Math.max(scale, 0) };
}

/**
 * Decimal exponent of the first digit: 3 for 1234.5, -2 for 0.012; 0 for zero.
 * @param {Decimal} value
 * @returns {number}
 */
export function magnitude({ digits, scale }) {
  return digits === 0n ? 0 : digits.toString().length - 1 - scale;
}

/**
 * Integer and fraction digits, unsigned.
 * @param {Decimal} value
 * @returns {{whole: string, fraction: string}} fraction of exactly `scale` digits
 */
export function split({ digits, scale }) {
  const text = digits.toString().padStart(scale + 1, "0");
  return { whole: text.slice(0, text.length - scale), fraction: text.slice(text.length - scale) };
}

/**
 * The exact sum.
 * @param {string[]} texts plain decimals
 * @returns {string} plain decimal
 */
export function sum(texts) {
  const values = texts.map(parse);
  const scale = Math.max(0, ...values.map((value) => value.scale));
  const total = values.reduce((sofar, value) => {
    const units = value.digits * 10n ** BigInt(scale - value.scale);
    return value.negative ? sofar - units : sofar + units;
  }, 0n);
  const negative = total < 0n;
  const { whole, fraction } = split({ negative, digits: negative ? -total : total, scale });
  return `${negative ? "-" : ""}${whole}${fraction ? `.${fraction}` : ""}`;
}

/**
 * A part of a whole, in percent.
 * @param {string} part plain decimal
 * @param {string} whole plain decimal, not zero
 * @returns {string} plain decimal of four fraction digits, rounded half to even
 */
export function share(part, whole) {
  const [numerator, denominator] = [parse(part), parse(whole)];
  const tenfold = 10n ** 20n; // more digits than needed: the rest does not affect four digits
  const scaled = numerator.digits * 10n ** BigInt(denominator.scale) * 100n * tenfold;
  const digits = scaled / (denominator.digits * 10n ** BigInt(numerator.scale));
  const value = round({ negative: numerator.negative !== denominator.negative, digits, scale: 20 }, 4);
  const { whole: before, fraction } = split(value);
  return `${value.negative ? "-" : ""}${before}.${fraction}`;
}

/**
 * Sign of a decimal.
 * @param {string} text plain decimal
 * @returns {-1 | 0 | 1}
 */
export function sign(text) {
  const { negative, digits } = parse(text);
  return digits === 0n ? 0 : negative ? -1 : 1;
}

/**
 * Compare two decimals.
 * @param {string} one plain decimal
 * @param {string} other plain decimal
 * @returns {-1 | 0 | 1} as for a comparator
 */
export const compare = (one, other) => sign(sum([one, negated(other)]));

/** @param {string} text plain decimal @returns {string} with the other sign */
export const negated = (text) => (text.startsWith("-") ? text.slice(1) : `-${text}`);

/**
 * The nearest float, only for pixel positions and never for displayed numbers.
 * @param {string | null} text
 * @returns {number | null}
 */
export function toPixels(text) {
  return text === null ? null : Number(text);
}
