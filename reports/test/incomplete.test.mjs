import assert from "node:assert/strict";
import { test } from "node:test";

import { notCollectedBetween } from "../src/cap-table-changes/incomplete.js";

test("time that is not collected between two moments is told as harmless, and only where there is some", () => {
  assert.equal(notCollectedBetween({ coverage: { complete: true, gaps: [] } }), null);
  assert.equal(notCollectedBetween({ coverage: { complete: false, gaps: [{}] } }).isHarmless, true);
});
