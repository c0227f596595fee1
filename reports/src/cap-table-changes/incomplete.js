/** What a report of two moments says of the time between them that was not collected. */

/**
 * @param {any} summary
 * @returns {Parameters<typeof import("../incomplete.js").drawIncomplete>[0]}
 */
export const notCollectedBetween = ({ coverage }) =>
  coverage.complete
    ? null
    : {
        title: "Part of the time between the two moments is not collected",
        why:
          "Both moments are, so the totals are right. Of a holder who was not seen on one side of the gap, " +
          "the quantity there may be unknown.",
        isHarmless: true,
      };
