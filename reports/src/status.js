/** Words for every status of a missing number, and for the strip. */

const WORDS = {
  NoPair: "No price pair",
  NoPrice: "No price yet",
  StalePrice: "Price too old",
  Quarantined: "Price under review",
  UnknownDecimals: "Decimals unknown",
  UnknownTime: "Time of the block not stored",
  UnknownAmount: "Quantity unknown",
  UnknownFee: "Fee unknown",
  UnknownSupply: "Supply unknown",
  Unknown: "Supply not read yet",
  Unconfirmed: "Supply not confirmed",
  HoldersUnknown: "Holders unknown",
  ZeroSupply: "Supply is zero",
  NotCovered: "Not collected then",
  NotYetCollected: "Not collected yet",
  UnknownBefore: "Unknown before",
  UnknownAfter: "Unknown after",
  ZeroBase: "Was zero before",
};

const REASONS = {
  TrackingDisabled: "tracking was disabled",
  NotYetCollected: "not collected yet",
  ProviderFailed: "the network's provider failed; it is tried again",
  BeforeTracking: "before tracking began",
  NeverTracked: "tracking was never enabled",
};

const CHECKS = {
  Reconciled: { word: "Reconciled", meaning: "A reading of the chain confirms this balance." },
  Adjusted: {
    word: "Adjusted",
    meaning: "A reading confirms this balance. An activity shows where it differed from the transfers before.",
  },
  Unchecked: { word: "Unchecked", meaning: "No reading of the chain confirms this balance." },
};

const TYPES = {
  TransferIn: "Transfer in",
  TransferOut: "Transfer out",
  Self: "To itself",
  Mint: "Mint",
  Burn: "Burn",
  Fee: "Fee",
  Internal: "Internal",
  Adjustment: "Adjustment",
  Coinbase: "Coinbase",
};

/** @param {string} status @returns {string} why a number is missing; an unknown status is returned unchanged */
export const reasonOf = (status) => WORDS[status] ?? status;

/** @param {string | undefined} asOfStatus @returns {string} why a report has no as-of block */
export const noBlock = (asOfStatus) =>
  asOfStatus === "BeforeCreation" ? "Before the token's creation" : "Nothing collected yet";

/** A number of known holders that may be incomplete. @param {string} shown @param {string} status */
export const bounded = (shown, status) => (status === "LowerBound" ? `≥\u00a0${shown}` : shown);

/** @param {string} reason @returns {string} why a range is not collected */
export const gapReason = (reason) => REASONS[reason] ?? reason;

/** @param {string} state @returns {{word: string, meaning: string}} of a reconciliation */
export const checkOf = (state) => CHECKS[state] ?? { word: state, meaning: "" };

/**
 * The most common state of a report's balances; the others are exceptions.
 * @param {Record<string, any>} counts by state in lower case
 * @returns {string}
 */
export const usualState = (counts) =>
  Object.keys(CHECKS).reduce((most, state) => (counts[state.toLowerCase()] > counts[most.toLowerCase()] ? state : most));

/** @param {string} type @returns {string} of an activity, for people */
export const typeOf = (type) => TYPES[type] ?? type;

/** The types of wallet activities, in the order in which charts stack them. */
export const ACTIVITY_TYPES = Object.keys(TYPES);
