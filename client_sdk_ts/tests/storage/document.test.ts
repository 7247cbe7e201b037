/** Laws of the text of a document: it is read back, refused or in doubt, and no damage is overlooked. */

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";

import { StoreError } from "../../src/core/errors.js";
import { capsOf } from "../../src/privacy/caps.js";
import { readDocument, writeDocument } from "../../src/storage/document.js";
import { addReport, beginLedger, charge, totalsOf } from "../../src/storage/ledger.js";
import { put } from "../../src/storage/outbox.js";
import { newState, type State } from "../../src/storage/state.js";
import { advance, noUptime } from "../../src/storage/trusted_clock.js";

const METRIC = "0123456789ab";
const REST = 7_999_999_999; // nano-epsilon of a week of 8

/** Returns a document with something in every field. */
function fullState(): State {
  const state = newState();
  const day = advance(state, 1e9, noUptime());
  charge(state, capsOf(), { digest: METRIC, epoch: 3, nano: 1 }, day);
  addReport(state, METRIC, "tag");
  put(state, { digest: METRIC, epoch: 3, payload: "AAAA", day }, { platform: "Überlinux" }, ["platform"]);
  state.secret = "c".repeat(43);
  state.windows.push({ digest: METRIC, epoch: 4, sealed: "AA" });
  state.uploads.push({ id: "i", body: "{}", reports: 1, sealedDay: day, tries: 0 });
  state.sent.push({ digest: METRIC, epoch: 2, payload: "BBBB", day });
  state.retired = { number: 1, digests: [METRIC] };
  state.consent = "granted";
  return state;
}

/** Returns the text of any value behind a checksum that holds. */
function textOf(value: unknown): string {
  const json = JSON.stringify(value);
  return `${createHash("sha256").update(json).digest("hex").slice(0, 16)} ${json}`;
}

test("what was written is read back", () => {
  const state = fullState();

  assert.deepEqual(readDocument(writeDocument(state)), state);
  assert.deepEqual(readDocument(null), newState());
});

test("a text that ends anywhere is in doubt, and the first charge is preceded by the rest of a week", () => {
  const text = writeDocument(fullState());

  for (let end = 0; end < text.length; end++) {
    const state = readDocument(text.slice(0, end));
    assert.deepEqual(state, newState(true), `at ${end}`);
  }
  const state = readDocument("");
  assert.equal(beginLedger(state, capsOf(), 9), true);
  assert.equal(totalsOf(state, 9).week, REST + 1);
});

test("a text with any other character anywhere is in doubt", () => {
  const text = writeDocument(fullState());

  for (let at = 0; at < text.length; at++) {
    for (const character of ["0", "9", "x", "}", "\0"]) {
      if (text[at] === character) continue;
      const damaged = text.slice(0, at) + character + text.slice(at + 1);
      assert.deepEqual(readDocument(damaged), newState(true), `${character} at ${at}`);
    }
  }
});

test("what is no text at all is in doubt", () => {
  for (const value of [7, {}, [], fullState(), new Uint8Array(9)]) assert.deepEqual(readDocument(value), newState(true));
});

test("a document of a newer version is refused", () => {
  for (const value of [{ version: 2 }, { ...fullState(), version: 1000, ledger: "new" }]) {
    assert.throws(() => readDocument(textOf(value)), StoreError);
  }
});

test("a field that was never written leaves ledger, clock and what was retired, in doubt", () => {
  const whole = fullState();
  const strange = [undefined, -1.5, "text", true, [1], { a: { a: 1 } }, [{}], [null]];

  for (const key of Object.keys(whole) as (keyof State)[]) {
    for (const value of strange) {
      if (key === "version" || textOf({ ...whole, [key]: value }) === textOf(whole)) continue;
      if (key === "consent" && value === "text") continue;
      if ((key === "secret" && value === "text") || ((key === "doubt" || key === "session") && value === true)) continue;
      const state = readDocument(textOf({ ...whole, [key]: value }));
      const about = `${key}: ${JSON.stringify(value)}`;

      assert.equal(state.doubt, true, about);
      assert.deepEqual([state.reports, state.uploads, state.windows, state.secret], [[], [], [], null], about);
      assert.equal(key === "ledger" || totalsOf(state, 11574).lifetime === 1, true, about);
      assert.deepEqual(state.ledger[METRIC]?.memo ?? {}, {}, about);
    }
  }
});

test("accounts that no ledger wrote are not believed", () => {
  const whole = fullState();
  const account = whole.ledger[METRIC]!;
  const strange = [
    { ...account, nano: -1 },
    { ...account, nano: 0.5 },
    { ...account, epochs: [[3, 2]] },
    { ...account, epochs: [[5, 6], [1, 2]] },
    { ...account, epochs: [[1]] },
    { ...account, costs: [{ first: 2, last: 1, nano: 1 }] },
    { ...account, costs: [{ first: 1, last: 2, nano: -1 }] },
    { ...account, memo: { tag: "1" } },
  ];

  for (const value of strange) {
    const state = readDocument(textOf({ ...whole, ledger: { [METRIC]: value } }));
    assert.deepEqual([state.doubt, state.ledger], [true, {}], JSON.stringify(value));
  }
});

test("a document that could not be read again is not written", () => {
  const state = fullState();
  state.times.next = NaN;

  assert.throws(() => writeDocument(state), StoreError);
});
