import assert from "node:assert/strict";
import { test } from "node:test";

import { fullAt } from "../src/token.js";

test("bars are full at the largest, or at twice the second largest where one would make dots of the others", () => {
  assert.equal(fullAt(["60", "40", "1"]), 60);
  assert.equal(fullAt(["98", "1", "0.5"]), 2);
  assert.equal(fullAt(["98"]), 98);
});

test("bars of differences go by size, whatever the sign", () => {
  assert.equal(fullAt(["-98", "1"]), 2);
  assert.equal(fullAt(["60", "-40"]), 60);
});

test("without a number a bar still has a length to be compared with", () => {
  for (const lengths of [[], [null], ["0", "0"], ["0"]]) assert.ok(fullAt(lengths) > 0, String(lengths));
});
