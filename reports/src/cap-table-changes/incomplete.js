/** Banner of a report of two moments about gaps between them. */

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
          "Both moments are collected, so the totals are right. The quantity of a holder that is known on only one " +
          "side of the gap may be unknown on the other side.",
        isHarmless: true,
      };
