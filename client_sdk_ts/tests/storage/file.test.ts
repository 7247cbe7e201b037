/** Laws of the store in a folder. */

import assert from "node:assert/strict";
import {
  cpSync, existsSync, lutimesSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, renameSync, rmSync, statSync,
  symlinkSync, unlinkSync, writeFileSync,
} from "node:fs";
import promises from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";

import { DAY } from "../../src/core/epoch.js";
import { InvalidParameterError, StoreError } from "../../src/core/errors.js";
import { capsOf } from "../../src/privacy/caps.js";
import { takeClaim } from "../../src/storage/claims.js";
import { DOCUMENT_FILE, fileStore, GENERATION_FILE } from "../../src/storage/file.js";
import { addReport, beginLedger, charge, totalsOf } from "../../src/storage/ledger.js";
import { put } from "../../src/storage/outbox.js";
import { RESERVE_FILE } from "../../src/storage/reserve.js";
import type { State } from "../../src/storage/state.js";
import { advance } from "../../src/storage/trusted_clock.js";

const METRIC = "0123456789ab";
const SECRET = "A".repeat(42) + "E"; // 32 bytes

function folderOf(context: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), "hearsay-test-"));
  context.after(() => rmSync(folder, { recursive: true }));
  return folder;
}

/** What is left beside a secret, sorted. */
const FILES = [RESERVE_FILE, GENERATION_FILE, DOCUMENT_FILE];

const consentOf = (state: State): string | null => state.consent;
const grant = (state: State): string => (state.consent = "granted");

test("it makes its folder for one user, and leaves nothing but document and secret", async (context) => {
  const folder = join(folderOf(context), "a", "b");
  const store = fileStore(folder);
  assert.equal(await store.read(consentOf), null);
  assert.equal(existsSync(folder), false);

  await store.update((state) => {
    state.consent = "granted";
    state.secret = SECRET;
  });

  assert.deepEqual(readdirSync(folder).sort(), [...FILES, "secret"]);
  if (process.platform !== "win32") {
    const modes = [folder, ...[...FILES, "secret"].map((name) => join(folder, name))].map((path) => statSync(path).mode & 0o777);
    assert.deepEqual(modes, [0o700, 0o600, 0o600, 0o600, 0o600]);
  }
  assert.deepEqual(await fileStore(folder).read((state) => [state.consent, state.secret]), ["granted", SECRET]);
  assert.equal(readFileSync(join(folder, DOCUMENT_FILE), "utf-8").includes(SECRET), false);
});

test("a secret that is forgotten is gone from the folder", async (context) => {
  const folder = folderOf(context);
  const store = fileStore(folder);
  await store.update((state) => (state.secret = SECRET));

  await store.update((state) => (state.secret = null));

  assert.deepEqual(readdirSync(folder).sort(), FILES);
  assert.equal(await store.read((state) => state.secret), null);
});

test("a change that throws, and one that changes nothing, write nothing", async (context) => {
  const folder = folderOf(context);
  const store = fileStore(folder);
  await store.update(grant);
  const before = statSync(join(folder, DOCUMENT_FILE)).ino;

  await assert.rejects(store.update((state) => {
    state.consent = "denied";
    throw new RangeError("broken");
  }), RangeError);
  await store.update(grant);

  assert.equal(await store.read(consentOf), "granted");
  assert.equal(statSync(join(folder, DOCUMENT_FILE)).ino, before);
  assert.deepEqual(readdirSync(folder).sort(), FILES);
});

test("a file that ends anywhere, or is none of ours, begins anew in doubt", async (context) => {
  const folder = folderOf(context);
  const path = join(folder, DOCUMENT_FILE);
  await fileStore(folder).update((state) => {
    state.consent = "granted";
    state.secret = SECRET;
  });
  const whole = readFileSync(path);

  for (let end = 0; end < whole.length; end++) {
    writeFileSync(path, whole.subarray(0, end));
    const seen = await fileStore(folder).read((state) => [state.doubt, state.consent, state.secret]);
    assert.deepEqual(seen, [true, null, null], `at ${end}`);
  }
  await fileStore(folder).update((state) => (state.doubt = false));
  assert.deepEqual(readdirSync(folder).sort(), FILES);
  assert.equal(await fileStore(folder).read((state) => state.doubt), false);
});

test("a ledger that was lost beside anything else of it begins anew in doubt, and beside nothing without", async (context) => {
  const parent = folderOf(context);
  for (const left of [RESERVE_FILE, GENERATION_FILE, "secret", null]) {
    const folder = join(parent, String(left));
    await fileStore(folder).update((state) => (state.secret = SECRET));

    for (const file of readdirSync(folder)) if (file !== left) unlinkSync(join(folder, file));

    assert.deepEqual(await fileStore(folder).read((state) => [state.doubt, state.secret]), [left !== null, null], String(left));
  }
});

/** Ways in which a folder comes to an earlier state; true: it must be noticed. */
const RESTORED: [what: string, restore: (folder: string, backup: string) => void, isNoticed: boolean][] = [
  ["the document is put back", (folder, backup) => cpSync(join(backup, DOCUMENT_FILE), join(folder, DOCUMENT_FILE)), true],
  ["the folder is deleted and put back", (folder, backup) => {
    rmSync(folder, { recursive: true });
    cpSync(backup, folder, { recursive: true });
  }, true],
  ["a crash comes before the generation", (folder, backup) => cpSync(join(backup, GENERATION_FILE), join(folder, GENERATION_FILE)), false],
  ["the generation is lost", (folder) => unlinkSync(join(folder, GENERATION_FILE)), false],
];

test("a ledger that was put back to an earlier state is in doubt, until what was spent since is charged", async (context) => {
  const parent = folderOf(context);
  if (!statSync(parent).birthtimeMs) return context.skip("this file system does not say when a folder was made");
  for (const [what, restore, isNoticed] of RESTORED) {
    const [folder, backup] = [join(parent, what), join(parent, `${what}, before`)];
    const spend = (epoch: number): Promise<boolean> =>
      fileStore(folder).update((state) => {
        const before = state.doubt;
        beginLedger(state, capsOf(), 0);
        charge(state, capsOf({ week: "20" }), { digest: METRIC, epoch, nano: 1 }, 0);
        return before;
      });
    await spend(1);
    cpSync(folder, backup, { recursive: true });
    await spend(2);

    for (const epoch of [3, 4]) { // twice: it is noticed each time
      restore(folder, backup);

      assert.deepEqual([await spend(epoch), await spend(epoch + 10)], [isNoticed, false], what);
    }
  }
});

test("a copy keeps what was spent, in doubt, and repeats nothing of what it was copied from", async (context) => {
  const parent = folderOf(context);
  const [folder, moved, copy] = ["a", "b", "c"].map((name) => join(parent, name)) as [string, string, string];
  await fileStore(folder).update((state) => {
    advance(state, 1e9, { boot: "a", up: 0 });
    charge(state, capsOf(), { digest: METRIC, epoch: 1, nano: 1 }, 0);
    addReport(state, METRIC, "tag");
    put(state, { digest: METRIC, epoch: 1, payload: "AA", day: 0 }, {}, []);
    state.windows.push({ digest: METRIC, epoch: 2, sealed: "AA" });
    state.secret = SECRET;
  });
  renameSync(folder, moved);
  cpSync(moved, copy, { recursive: true });

  const [there, here] = await Promise.all([moved, copy].map((path) => fileStore(path).read((state) => state)));

  assert.deepEqual([there?.doubt, there?.secret, there?.reports.length], [false, SECRET, 1]);
  assert.deepEqual([here?.doubt, here?.secret, here?.reports, here?.windows], [true, null, [], []]);
  assert.deepEqual(here?.ledger[METRIC], { ...there?.ledger[METRIC], memo: {} });
  // the time that passed meanwhile is not trusted
  assert.equal(advance(here!, 1e9 + 9 * DAY, { boot: "a", up: 9000 * DAY }), Math.floor(1e9 / DAY));
  await fileStore(copy).update((state) => beginLedger(state, capsOf(), 0));
  assert.deepEqual(await fileStore(copy).read((state) => [state.doubt, totalsOf(state, 0).week]), [false, 8e9]);
  assert.deepEqual(readdirSync(copy).sort(), FILES);
});

test("what cannot be written is a StoreError, and nothing happened", async (context) => {
  const folder = folderOf(context);
  writeFileSync(join(folder, "file"), "");

  await assert.rejects(fileStore(join(folder, "file", "below")).update(grant), StoreError);
  await assert.rejects(fileStore(join(folder, "file")).update(grant), StoreError);
  await assert.rejects(fileStore(folder).update((state) => void (state.doubt = 1 as unknown as boolean)), StoreError);
  for (const path of ["", "a\0b", null as unknown as string]) assert.throws(() => fileStore(path), InvalidParameterError);
});

test("a change is never done twice, also if the disk is full once it is there", async (context) => {
  const folder = folderOf(context);
  const { open } = promises;
  let full = true;
  context.mock.method(promises, "open", (path: string, ...rest: [string, number?]) => {
    if (path !== folder || !full) return open(path, ...rest);
    full = false;
    return Promise.reject(Object.assign(new Error("full"), { code: "ENOSPC" }));
  });
  syncBuiltinESMExports();
  context.after(syncBuiltinESMExports);
  let calls = 0;

  await assert.rejects(fileStore(folder).update((state) => (calls++, (state.times.rests += 1))), StoreError);

  assert.deepEqual([calls, await fileStore(folder).read(({ times }) => times.rests)], [1, 1]);
});

test("a closed store finishes what was begun and takes nothing more", async (context) => {
  const store = fileStore(folderOf(context));
  const begun = store.update(grant);

  await store.close();

  assert.equal(await begun, "granted");
  await assert.rejects(store.update(grant), StoreError);
  await assert.rejects(store.read(consentOf), StoreError);
});

test("a claim stops others while its process lives, and nobody once it is gone", (context) => {
  const folder = folderOf(context);
  const claim = takeClaim(folder, 7);
  assert.ok(claim);
  assert.equal(claim.isHeld(), true);
  assert.equal(takeClaim(folder, 7), null);
  assert.ok(takeClaim(folder, 8));
  claim.release();
  if (process.platform === "win32") return;
  const path = join(folder, "claim-9-0");
  symlinkSync(abandoned(folder), path);

  const next = takeClaim(folder, 9);

  assert.equal(next?.name, "9-1");
  assert.equal(takeClaim(folder, 9), null);
  next.release();
  assert.equal(takeClaim(folder, 9)?.name, "9-1");
});

test("a claim whose process cannot be seen counts as abandoned after a minute, and no sooner", (context) => {
  const folder = folderOf(context);
  symlinkSync("1 2 nonce elsewhere", join(folder, "claim-3-0"));
  writeFileSync(join(folder, "claim-4-0"), ""); // as of a writer that was killed, where there are no links

  for (const generation of [3, 4]) {
    assert.equal(takeClaim(folder, generation), null);
    const now = Date.now() / 1000;
    lutimesSync(join(folder, `claim-${generation}-0`), now - 50, now - 50);
    assert.equal(takeClaim(folder, generation), null);
    lutimesSync(join(folder, `claim-${generation}-0`), now - 70, now - 70);
    assert.equal(takeClaim(folder, generation)?.name, `${generation}-1`);
  }
});

/** Returns the text of a claim of a process that is gone. */
function abandoned(folder: string): string {
  takeClaim(folder, 1);
  const [, start, nonce, ...place] = readlinkSync(join(folder, "claim-1-0")).split(" ");
  return [2 ** 22 + 1, start, nonce, ...place].join(" ");
}

test("a folder that nobody can make is an error at once", async (context) => {
  if (process.platform !== "linux") return context.skip("needs /proc");
  const file = join(folderOf(context), "file");
  writeFileSync(file, "");
  for (const place of ["/proc/hearsay/telemetry", join(file, "telemetry"), file]) {
    await assert.rejects(fileStore(place).update(grant), StoreError);
  }
});
