import assert from "node:assert/strict";
import { test } from "node:test";

import { notCollectedBetween } from "../src/cap-table-changes/incomplete.js";
import { missingHolders } from "../src/cap-table/incomplete.js";

test("time that is not collected between two moments is told as harmless, and only where there is some", () => {
  assert.equal(notCollectedBetween({ coverage: { complete: true, gaps: [] } }), null);
  assert.equal(notCollectedBetween({ coverage: { complete: false, gaps: [{}] } }).isHarmless, true);
});

test("an unconfirmed supply is no alarm by itself, and never a token that contradicts itself", () => {
  const table = (totalSupplyStatus, percentage) =>
    missingHolders({
      token: { id: "tok_1" },
      holdersStatus: "HoldersUnknown",
      totalSupplyStatus,
      unattributed: { percentage },
      isCurrent: true,
    });
  assert.equal(table("Unconfirmed", "0"), null);
  assert.match(table("Unconfirmed", "-1").why, /No reading of the chain confirms the total supply/);
  assert.match(table("Observed", "-1").why, /that the contract reports/);
});
