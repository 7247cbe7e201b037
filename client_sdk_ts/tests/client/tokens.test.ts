/** Laws of one-time tokens: when a device asks for them, what it believes, and that each pays for one upload. */

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { publicVerif, Token, TOKEN_TYPES } from "@cloudflare/privacypass-ts";

import { TransportError } from "../../src/core/errors.js";
import { type Answer, Client, type ClientOptions, type Issuer, memoryStore, type Transport } from "../../src/index.js";
import { fileStore } from "../../src/node.js";
import { everything } from "../../src/all.js";
import { relay } from "../../src/parts/relay.js";
import { tokens } from "../../src/parts/tokens.js";
import type { State } from "../../src/storage/state.js";
import { FakeIssuer, weekOf } from "../support/issuer.js";
import { Gateway } from "../support/peer.js";
import { counted, DAILY, DAY, FakeClock, HOUR, NOON, options, WEEKLY } from "./support.js";

const WEEK = weekOf(NOON);

/** Keeps what it is sent, and answers by a script; then it accepts. */
class Collector implements Transport {
  readonly sent: [body: string, token: string | undefined][] = [];
  readonly script: (number | TransportError)[];

  constructor(...script: (number | TransportError)[]) {
    this.script = script;
  }

  async send(body: string, _: number, headers?: Readonly<Record<string, string>>): Promise<Answer> {
    this.sent.push([body, headers?.["Hearsay-Token"]]);
    const step = this.script.shift() ?? 202;
    if (typeof step !== "number") throw step;
    return { status: step, body: step === 202 ? '{"accepted":1,"rejected":[]}' : "" };
  }
}

interface Device {
  readonly client: Client;
  readonly clock: FakeClock;
  readonly collector: Collector;
  readonly issuer: FakeIssuer;
  readonly store: ReturnType<typeof memoryStore>;
}

async function device(
  collector = new Collector(), more: Partial<Issuer> = {}, issuer?: FakeIssuer, given: Partial<ClientOptions> = { transport: collector },
): Promise<Device> {
  issuer ??= FakeIssuer.of(WEEK);
  const [clock, store] = [new FakeClock(), memoryStore()];
  const client = new Client(options({
    mechanisms: [...everything, tokens, relay], store, clock: clock.read, uptime: clock.uptime,
    tokens: { url: "https://issuer.example/", plan: issuer.digest, attestation: "somebody", ...more },
    caps: { metric_week: "999", week: "999" }, ...given,
  }), { exchange: issuer.exchange });
  return { client, clock, collector, issuer, store };
}

const idOf = (token: string): string => createHash("sha256").update(Buffer.from(token, "base64url")).digest().subarray(0, 16).toString("base64url");
/** Of a copy: privacypass-ts reads from the beginning of the memory that a Buffer shares with others. */
const parsed = (token: string): Token => Token.deserialize(TOKEN_TYPES.BLIND_RSA, Uint8Array.from(Buffer.from(token, "base64url")));
const held = ({ store }: Device): Promise<State["tokens"]> => store.read(({ tokens: kept }) => kept && structuredClone(kept));

test("an upload carries a token whose hash is its id, and which others take", async () => {
  const { client, collector, issuer } = await device();
  client.record(DAILY, true);

  const first = await client.flush(); // fetches, and sends nothing
  assert.deepEqual([first.complete, collector.sent.length, issuer.asked], [false, 0, 3]);
  await client.flush();

  const [[body, token]] = collector.sent as [[string, string]];
  assert.equal((JSON.parse(body) as { id: string }).id, idOf(token));
  const theirs = parsed(token);
  const context = Buffer.alloc(32);
  context.writeUInt32BE(WEEK, 28);
  const challenge = new publicVerif.Origin(publicVerif.BlindRSAMode.PSS, [client.registry.app]).createTokenChallenge("issuer.example", context);
  assert.equal(Buffer.from(theirs.authInput.challengeDigest).toString("hex"), createHash("sha256").update(challenge.serialize()).digest("hex"));
  const key = await crypto.subtle.importKey("spki", issuer.keys[0]!.plain, { name: "RSA-PSS", hash: "SHA-384" }, true, ["verify"]);
  assert.ok(await new publicVerif.Origin(publicVerif.BlindRSAMode.PSS).verify(theirs, key));
  assert.deepEqual(issuer.requests.map(({ url, headers }) => [url, headers["Authorization"]]), [
    ["https://issuer.example/.well-known/private-token-issuer-directory", undefined],
    ...Array.from({ length: 3 }, () => ["https://issuer.example/token-request", "Bearer somebody"]),
  ]);
  await client.close();
});

for (const failure of [503, 403, new TransportError("lost")]) {
  test(`after ${String(failure)} a retry is the same bytes with the same token`, async () => {
    const { client, clock, collector } = await device(new Collector(failure));
    client.record(DAILY, true);

    for (let pass = 0; collector.sent.length < 2; pass++, clock.time += DAY / 2) {
      assert.ok(pass < 8);
      await client.flush();
    }

    assert.deepEqual(collector.sent[0], collector.sent[1]);
    assert.ok(collector.sent[0]![1]);
    await client.close();
  });
}

test("tokens and what was sealed with one outlast the program", async () => {
  const [folder, issuer, clock] = [await mkdtemp(join(tmpdir(), "hearsay-tokens-")), FakeIssuer.of(WEEK), new FakeClock()];
  const collector = new Collector(503);
  try {
    for (let program = 0; collector.sent.length < 2; program++, clock.time += DAY / 2) {
      assert.ok(program < 8);
      const { client } = await device(collector, {}, issuer, { transport: collector, store: fileStore(folder), clock: clock.read });
      if (!program) client.record(DAILY, true);
      await client.flush();
      await client.close();
    }

    assert.deepEqual(collector.sent[0], collector.sent[1]);
    assert.equal((JSON.parse(collector.sent[0]![0]) as { id: string }).id, idOf(collector.sent[0]![1]!));
    assert.ok(issuer.asked <= 6); // of this week and the next
  } finally {
    await rm(folder, { recursive: true });
  }
});

test("a token that nobody saw pays for another upload, so an outage uses up none", async () => {
  const away = Array.from({ length: 8 }, () => new TransportError("nobody listens", true));
  const { client, clock, collector } = await device(new Collector(...away));
  client.record(DAILY, true);

  for (let pass = 0; !client.stats().uploaded; pass++, clock.time += 6 * HOUR) {
    assert.ok(pass < 30);
    await client.flush();
  }

  assert.equal(collector.sent.length, 9);
  assert.ok(collector.sent.every(([, token]) => token));
  await client.close();
});

test("no two uploads have one token, and what has none waits", async () => {
  const { client, clock, collector } = await device(new Collector(), {}, FakeIssuer.of(WEEK, 2));
  for (let pass = 0; pass < 4; pass++) {
    client.record(DAILY, true);
    await client.flush();
    await client.flush();
    clock.time += DAY;
  }

  const all = collector.sent.map(([, token]) => token);
  assert.deepEqual([all.length, new Set(all).size], [2, 2]);
  assert.equal((await client.flush()).waiting, 2);
  await client.close();
});

test("tokens of the next week are asked for at a moment of this one, and spent then", async () => {
  const made = await device();
  const { client, clock, collector, issuer } = made;
  client.record(DAILY, true);
  await client.flush();
  const { due = 0 } = (await held(made)) ?? {};
  assert.ok(due >= NOON / 1_000 && due <= NOON / 1_000 + (7 * DAY) / 1_000);
  while (weekOf(clock.time) === WEEK) {
    clock.time += 12 * HOUR;
    await client.flush();
  }
  assert.equal(issuer.asked, 6);
  client.record(DAILY, true);

  await client.flush();

  const [, token] = collector.sent.at(-1)!;
  const { tokenKeyId } = parsed(token!).authInput;
  assert.equal(Buffer.from(tokenKeyId).toString("hex"), (issuer.plan["key_ids"] as string[])[1]);
  await client.close();
});

test("an issuer that says no is asked again the next day only, and what need not have a token goes without", async () => {
  for (const [required, sent] of [[true, 0], [false, 1]] as const) {
    const { client, collector, issuer } = await device(new Collector(), { required, attestation: () => Promise.resolve("a-stranger") });
    issuer.refuse = ({ body }) => (body ? 403 : undefined);
    client.record(DAILY, true);

    for (let pass = 0; pass < 3; pass++) await client.flush();

    assert.deepEqual(collector.sent.map(([, token]) => token), Array.from({ length: sent }, () => undefined));
    assert.deepEqual([client.stats().refused, issuer.asked], [1, 1]);
    await client.close();
  }
});

test("an issuer that is away, or has given all, costs nothing", async () => {
  const { client, issuer } = await device();
  issuer.refuse = () => 503;
  client.record(DAILY, true);
  await client.flush();
  await client.flush();
  assert.deepEqual([counted(client), issuer.requests.length], [{ recorded: 1, network: 1 }, 1]);
  await client.close();

  const second = await device();
  second.issuer.refuse = ({ body }) => (body && second.issuer.asked > 1 ? 429 : undefined);
  second.client.record(DAILY, true);
  for (let pass = 0; pass < 3; pass++) await second.client.flush();
  assert.deepEqual([counted(second.client), second.issuer.asked], [{ recorded: 1, uploaded: 1 }, 2]);
  await second.client.close();

  const third = await device();
  third.issuer.refuse = ({ body }) => (body ? 429 : undefined);
  third.client.record(DAILY, true);
  for (let pass = 0; pass < 3; pass++) await third.client.flush();
  assert.deepEqual([counted(third.client), third.issuer.asked], [{ recorded: 1, refused: 1 }, 1]);
  await third.client.close();
});

test("a 429 of a proxy is no word of the issuer, and an attestation that throws stops no upload", async () => {
  const limited = await device();
  limited.issuer.refuse = ({ body }) => (body ? 429 : undefined);
  limited.issuer.says = "<html>slow down</html>";
  limited.client.record(DAILY, true);
  await limited.client.flush();
  assert.deepEqual(counted(limited.client), { recorded: 1, network: 1 });
  await limited.client.close();

  const { client } = await device(new Collector(), { required: false, attestation: () => Promise.reject(new Error("away")) });
  client.record(DAILY, true);
  for (let pass = 0; pass < 2; pass++) await client.flush();
  assert.deepEqual(counted(client), { recorded: 1, internal: 1, uploaded: 1 });
  await client.close();
});

test("a denial leaves no token", async () => {
  const made = await device();
  made.client.record(DAILY, true);
  await made.client.flush();
  assert.equal((await held(made))?.held.length, 3);

  await made.client.setConsent("denied");

  assert.equal(await held(made), undefined);
  await made.client.close();
});

test("a device believes no key that it was not built with", async () => {
  const other = FakeIssuer.of(WEEK, 7);
  const withKeys = (change: (entry: Record<string, unknown>, i: number) => Record<string, unknown>) => (good: Record<string, unknown>) =>
    ({ ...good, "token-keys": (good["token-keys"] as Record<string, unknown>[]).map(change) });
  const wrong: Record<string, (good: Record<string, unknown>) => unknown> = {
    "another plan": () => other.directory(),
    "more tokens than planned": (good) => ({ ...good, "hearsay-plan": { ...(good["hearsay-plan"] as object), tokens: 9 } }),
    "another key": withKeys((entry) => ({ ...entry, "token-key": (entry["token-key"] as string).replace(/.(?=.{9}$)/, (digit) => (digit === "A" ? "B" : "A")) })),
    "no proof": withKeys((entry) => ({ ...entry, "hearsay-proof": [] })),
    "half a proof": withKeys((entry) => ({ ...entry, "hearsay-proof": (entry["hearsay-proof"] as string[]).slice(1) })),
    "a proof of another key": withKeys((entry, i) => ({ ...entry, "hearsay-proof": other.keys[1 - i]!.proof })),
    "no keys": (good) => ({ ...good, "token-keys": [] }),
    "nothing": () => ({}),
    "no object": () => null,
  };
  for (const [what, change] of Object.entries(wrong)) {
    const { client, collector, issuer } = await device();
    const good = issuer.directory();
    issuer.directory = () => change(good) as Record<string, unknown>;
    client.record(DAILY, true);
    await client.flush();
    await client.flush();

    assert.deepEqual([issuer.asked, collector.sent.length, client.stats().refused], [0, 0, 1], what);
    await client.close();
  }
});

test("a signature that is none is not taken for a token", async () => {
  const made = await device();
  const { exchange } = made.issuer;
  const client = new Client(options({
    mechanisms: [...everything, tokens], transport: made.collector,
    tokens: { url: "https://issuer.example", plan: made.issuer.digest, attestation: "somebody" },
  }), {
    exchange: async (request, timeout) => {
      const response = await exchange(request, timeout);
      return request.body ? { ...response, bytes: () => response.bytes().reverse() } : response;
    },
  });
  client.record(WEEKLY, "pro");
  await client.flush();

  assert.deepEqual(counted(client), { recorded: 1, refused: 1 });
  await Promise.all([client.close(), made.client.close()]);
});

test("by a relay the token is in the capsule, and the relay does not see it", async () => {
  const [issuer, gateway] = [FakeIssuer.of(WEEK), await Gateway.of(1)];
  const sent: { capsule: Buffer; token: string | null; id: string }[] = [];
  const { client } = await device(new Collector(), {}, Object.assign(issuer, {
    exchange: (({ exchange }) => async (request: Parameters<typeof exchange>[0], timeout: number) => {
      if (request.url !== "https://relay.example") return exchange(request, timeout);
      assert.deepEqual(Object.keys(request.headers), ["Content-Type", "Accept"]);
      const opened = await gateway.open(request.body as Uint8Array);
      const { id } = JSON.parse(await opened.request.text()) as { id: string };
      sent.push({ capsule: Buffer.from(request.body as Uint8Array), token: opened.request.headers.get("hearsay-token"), id });
      const answer = Uint8Array.from(await opened.answer(new Response('{"accepted":1}', { status: 202 })));
      return { status: 200, header: (name: string) => (name === "content-type" ? "message/ohttp-res" : null), text: () => "", bytes: () => answer };
    })(issuer),
  }), { relay: "https://relay.example", relayKey: gateway.keys });
  for (const [name, value] of [[DAILY, true], [WEEKLY, "pro"]] as const) client.record(name, value);

  for (let pass = 0; pass < 3; pass++) await client.flush();

  assert.deepEqual(counted(client), { recorded: 2, uploaded: 2 });
  for (const { token, id } of sent) assert.equal(idOf(token!), id);
  assert.equal(new Set(sent.map(({ token }) => token)).size, 2);
  assert.equal(new Set(sent.map(({ capsule }) => capsule.length)).size, 1);
  await client.close();
});

test("settings that cannot be meant are refused at once", async () => {
  const issuer = FakeIssuer.of(WEEK);
  const good: Issuer = { url: "https://issuer.example", plan: issuer.digest, attestation: "somebody" };
  const mechanisms = [...everything, tokens];
  for (const [change, text] of [
    [{ url: "http://issuer.example" }, /^tokens\.url=http:\/\/issuer\.example: must begin with https/],
    [{ plan: "" }, /^tokens\.plan=: must be what `hearsay issuer-keys` printed/],
    [{ attestation: "two words" }, /^tokens\.attestation=\(hidden\): must be 1 to 4096/],
  ] as const) {
    assert.throws(() => new Client(options({ mechanisms, tokens: { ...good, ...change } })), (error: Error) => (assert.match(error.message, text), true));
  }
  assert.throws(() => new Client(options({ mechanisms: everything, tokens: good })), /part=tokens: is not in mechanisms/);
  await new Client(options({ mechanisms, tokens: { ...good, plan: `${issuer.digest}, ${issuer.digest}` } })).close();
});
