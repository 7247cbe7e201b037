/** Laws of processes: none is kept alive, none loses what it recorded, and they share what the store keeps alone. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { Client, type ClientOptions, fileStore, memoryStore } from "../../src/node.js";
import type { State } from "../../src/storage/state.js";
import { DAILY, FakeCollector, LARGEST, options, WEEKLY } from "./support.js";

const PROGRAM = fileURLToPath(new URL("../programs/short_life.js", import.meta.url));

/** Calls `use` with a folder of its own. */
async function inFolder(use: (folder: string) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "hearsay-"));
  try {
    await use(join(folder, "data"));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Returns a client of the folder that reaches no collector. */
const device = (folder: string): Client =>
  new Client(options({ store: fileStore(folder), transport: new FakeCollector(() => "refuse connection") }));

/** Runs the program to its end; returns what it said and what its store keeps. */
async function run(folder: string, endpoint: string, life: string): Promise<[said: string, status: unknown, state: State]> {
  const child = spawn(process.execPath, ["--unhandled-rejections=strict", PROGRAM, folder, endpoint, life]);
  let said = "";
  child.stdout.on("data", (part) => (said += String(part)));
  child.stderr.on("data", (part) => (said += String(part)));
  const [status] = await once(child, "exit");
  return [said, status, await fileStore(folder).read((state) => state)];
}

test("a program that ends without a word has written what it recorded, and is not kept alive", async () => {
  await inFolder(async (folder) => {
    const [said, status, state] = await run(folder, "http://127.0.0.1:9", "plain");

    assert.deepEqual([said, status], ["", 0]);
    assert.equal(state.reports.length, 2);
    assert.equal(state.uploads.length, 0);
  });
});

test("a program that waits for an answer is held by its flush, for as long as that was given", async () => {
  const server = createServer((socket) => void setTimeout(() => socket.destroy(), 300)).listen(0, "127.0.0.1");
  await once(server, "listening");
  await inFolder(async (folder) => {
    const [said, status, state] = await run(folder, `http://127.0.0.1:${(server.address() as AddressInfo).port}`, "waiting");

    assert.deepEqual([said, status], ["", 0]);
    assert.deepEqual([state.times.failures, state.uploads.length], [1, 1]);
  });
  server.close();
});

test("a thread of the same program has entropy, memory and a client of its own, and one ledger with it", async () => {
  await inFolder(async (folder) => {
    const [said, status, state] = await run(folder, "http://127.0.0.1:9", "worker");

    assert.deepEqual([said, status], ["", 0]);
    assert.equal(state.reports.length, 3); // the boolean of the day once
    assert.equal(new Set(state.reports.map(({ digest }) => digest)).size, 3);
  });
});

test("two clients of one folder charge each metric once", async () => {
  await inFolder(async (folder) => {
    const clients = [0, 1].map(() => device(folder));
    for (const client of clients) for (const name of [DAILY, WEEKLY]) client.record(name, name === DAILY ? true : "free");
    await Promise.all(clients.map((client) => client.close(30_000)));

    const counts = clients.map((client) => client.stats());
    assert.equal(counts.reduce((all, { recorded }) => all + recorded, 0), 2);
    assert.equal(counts.reduce((all, { already_reported: more }) => all + more, 0), 2);
  });
});

test("a denial is kept in the folder: the secret and what waited are gone, and other clients hear it", async () => {
  await inFolder(async (folder) => {
    const [first, second] = [0, 1].map(() => device(folder)) as [Client, Client];
    first.record(LARGEST, 3); // its window needs the secret
    first.record(DAILY, true);
    await first.flush();
    assert.ok(existsSync(join(folder, "secret")));

    await first.setConsent("denied");
    second.record(WEEKLY, "free");
    await second.close(30_000);
    await first.close(30_000);

    const state = await fileStore(folder).read((kept) => kept);
    assert.deepEqual([state.secret, state.reports, state.uploads, state.windows], [null, [], [], []]);
    assert.equal(Object.keys(state.ledger).length, 1);
    assert.deepEqual([second.consent, second.stats().consent], ["denied", 1]);
    assert.ok(!existsSync(join(folder, "secret")));
  });
});

test("a denial reaches what a closed client has kept, and closes the store again", async () => {
  await inFolder(async (folder) => {
    const client = device(folder);
    client.record(LARGEST, 3); // its window needs the secret
    client.record(DAILY, true);
    await client.close(30_000);
    assert.ok(existsSync(join(folder, "secret")));

    await client.setConsent("denied");

    const state = await fileStore(folder).read((kept) => kept);
    assert.deepEqual([state.secret, state.reports, state.uploads, state.windows], [null, [], [], []]);
    assert.deepEqual([client.stats().store, Object.keys(state.ledger).length], [0, 1]);
    client.record(WEEKLY, "free");
    await client.setConsent("granted");
    assert.deepEqual([client.stats().closed, (await client.flush()).waiting], [1, null]);
  });
});

test("a user's file says no, also to a client whose opt-outs are there and undefined", async () => {
  await inFolder(async (folder) => {
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, "telemetry-off"), "");
    const { optOuts: _, ...rest } = options({ store: fileStore(folder) });

    const clients = [new Client(rest), new Client({ ...rest, optOuts: undefined } as unknown as ClientOptions)];

    for (const client of clients) assert.notEqual(client.consentLevel, "application");
    await Promise.all(clients.map((client) => client.close()));
  });
});

test("without a yes nothing is made: no folder by any call of a client", async () => {
  for (const consent of ["unknown", "denied"] as const) {
    await inFolder(async (folder) => {
      const client = new Client(options({ store: fileStore(folder), consent }));
      client.record(DAILY, true);
      client.watch();
      await client.show();

      const delivery = await client.flush();

      await client.close();
      assert.deepEqual([existsSync(folder), delivery.waiting], [false, 0]);
    });
  }
});

test("where values could not be written, no flush says that nothing waits", async () => {
  await inFolder(async (folder) => {
    writeFileSync(folder, "");
    const client = device(folder);
    for (const name of [DAILY, WEEKLY]) {
      client.record(name, name === DAILY ? true : "free");

      assert.deepEqual(await client.flush(), { complete: false, waiting: null, wait: 0 });
    }
    rmSync(folder);
    client.record(DAILY, true);
    const { waiting } = await client.flush();

    assert.deepEqual([client.stats().store > 1, waiting], [true, 1]);
    await client.close();
  });
});

test("a store that never answers holds no call for longer than it was given", { timeout: 60_000 }, async () => {
  const never = (): Promise<never> => new Promise(() => undefined);
  for (const hanging of [{ update: never }, { read: never }, { read: never, update: never }]) {
    const client = new Client(options({ store: { ...memoryStore(), ...hanging }, transport: new FakeCollector() }));
    client.record(DAILY, true);

    const delivery = await client.flush(50);

    assert.equal(delivery.complete, false);
    await client.close(50);
  }
});
