/** Laws of uploads by a relay, with a gateway of other people's programs behind it. */

import assert from "node:assert/strict";
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { test } from "node:test";

import { type Answer, Client as BrowserClient, type ClientOptions } from "../../src/index.js";
import { Client as NodeClient } from "../../src/node.js";
import { toHex, fromHex, utf8 } from "../../src/core/bytes.js";
import { relay } from "../../src/parts/relay.js";
import { readResponse } from "../../src/wire/binary_http.js";
import { seal, sender } from "../../src/upload/hpke.js";
import { encapsulate, readKeys, relayTransport } from "../../src/upload/ohttp.js";
import { fetchExchange, outcomeOf, type Transport } from "../../src/upload/transport.js";
import { everything } from "../../src/all.js";
import { Gateway, keyList, type Opened } from "../support/peer.js";
import { reportsOf } from "../../src/wire/reports.js";
import { counted, DAILY, DAY, FakeClock, FakeCollector, HOURLY, options, WEEKLY } from "./support.js";

const CLIENTS = [["fetch", BrowserClient], ["node", NodeClient]] as const;
const ENDPOINT = "https://collector.example/some/path";
/** Of appendix A of RFC 9458. */
const CONFIGURATION = "01002031e1f05a740102115220e9af918f738674aec95f54db6e04eb705aae8e79815500080001000100010003";

/** Answers one capsule; by default as the collector does. */
type Behave = (response: ServerResponse, capsule: Buffer, answer: () => Promise<Buffer>) => unknown;

interface World {
  readonly url: string;
  readonly gateway: Gateway;
  readonly collector: FakeCollector;
  readonly capsules: Buffer[];
  readonly opened: Opened[];
  readonly seen: { method: string | undefined; url: string | undefined; headers: IncomingHttpHeaders }[];
  behave: Behave;
}

const OHTTP = { "Content-Type": "message/ohttp-res" };
const usual: Behave = async (response, _, answer) => response.writeHead(200, OHTTP).end(await answer());

/** Calls `use` with a relay that listens here, and the collector behind it. */
async function withRelay(use: (world: World) => Promise<void>): Promise<void> {
  const collector = new FakeCollector();
  const sockets = new Set<Socket>();
  const gateway = await Gateway.of(7);
  const [capsules, opened, seen]: [Buffer[], Opened[], World["seen"]] = [[], [], []];
  const server = createServer((request, response) => {
    const parts: Buffer[] = [];
    const { method, url, headers } = request;
    seen.push({ method, url, headers });
    request.on("data", (part: Buffer) => parts.push(part));
    request.on("end", () => {
      const capsule = Buffer.concat(parts);
      capsules.push(capsule);
      const answer = async (): Promise<Buffer> => {
        const inner = await gateway.open(capsule);
        opened.push(inner);
        const said = await collector.send(await inner.request.text());
        return inner.answer(new Response(said.body ?? "", { status: said.status, headers: { "Content-Type": said.contentType ?? "application/json" } }), 512);
      };
      void Promise.resolve(world.behave(response, capsule, answer)).catch(() => response.writeHead(400).end());
    });
  });
  server.on("connection", (socket: Socket) => void sockets.add(socket));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/a/relay`;
  const world: World = { url, gateway, collector, capsules, opened, seen, behave: usual };
  try {
    await use(world);
  } finally {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  }
}

const relayed = ({ url, gateway }: World, more: Partial<ClientOptions> = {}): ClientOptions => options({
  endpoint: ENDPOINT, relay: url, relayKey: gateway.keys, mechanisms: [...everything, relay],
  caps: { metric_week: "999", week: "999" }, ...more,
});

const transport = ({ url, gateway }: World): Transport =>
  relayTransport(fetchExchange, { endpoint: ENDPOINT, writeKey: "a-key", relay: url, relayKey: gateway.keys });

test("HPKE is that of RFC 9180, A.1.1, bit for bit", async () => {
  const publicKey = fromHex("3948cfe0ad1ddb695d780e59077195da6c56506b027329794ab02bca80815c4d");
  const secret = fromHex("52c4a758a802cd8b936eceea314432798d5baf2d7e9235dc084ab1b9cfa2f736");

  const made = await sender(publicKey, utf8("Ode on a Grecian Urn"), secret);

  assert.equal(toHex(made.encapsulated), "37fda3567bdbd628e88668c3c8d7e97d1d1253b6d4ea6d44c150f741f1bf4431");
  assert.equal(toHex(made.key), "4531685d41d65f03dc48f6b8302c05b0");
  assert.equal(toHex(made.nonce), "56d890e5accaaf011cff4b7d");
  assert.equal(
    toHex(await seal(made.key, made.nonce, utf8("Beauty is truth, truth beauty"), utf8("Count-0"))),
    "f938558b5d72f1a23810b4be2ab4f84331acc02fc97babc53a52ae8218a355a96d8770ac83d07bea87e13c512a",
  );
  assert.equal(toHex(await made.export(new Uint8Array(0), 32)), "3853fe2b4035195a573ffc53856e77058e15d9ea064de3e59f4961d0095250ee");
  assert.equal(toHex(await made.export(utf8("TestContext"), 32)), "e9e43065102c3836401bed8c3c3c75ae46be1639869391d62c61f1ec7af54931");
});

test("a capsule and its answer are those of RFC 9458, appendix A, bit for bit", async () => {
  const configuration = fromHex(CONFIGURATION);
  const [key] = readKeys(Buffer.from([0, configuration.length, ...configuration]).toString("base64url"));
  const request = fromHex("00034745540568747470730b6578616d706c652e636f6d012f");

  const capsule = await encapsulate(key!, request, fromHex("bc51d5e930bda26589890ac7032f70ad12e4ecb37abb1b65b1256c9c48999c73"));

  assert.equal(
    toHex(capsule.message),
    "010020000100014b28f881333e7c164ffc499ad9796f877f4e1051ee6d31bad19dec96c208b4726374e469135906992e" +
      "1268c594d2a10c695d858c40a026e7965e7d86b83dd440b2c0185204b4d63525",
  );
  const answer = fromHex("c789e7151fcba46158ca84b04464910d86f9013e404feea014e7be4a441f234f857fbd");
  assert.equal(toHex(await capsule.open(answer)), "0140c8");
  for (let at = 0; at < answer.length; at++) {
    const changed = answer.slice();
    changed[at]! ^= 1;
    await assert.rejects(capsule.open(changed), `byte ${at}`);
  }
});

test("of a list the first key of known algorithms is taken, and a wrong list is refused", () => {
  const ours = keyList(9, new Uint8Array(32).fill(1));
  const other = keyList(3, new Uint8Array(32).fill(2));
  other.writeUInt16BE(0x0010, 3); // P-256
  const chacha = keyList(4, new Uint8Array(32).fill(3));
  chacha.writeUInt16BE(3, chacha.length - 2);
  const keys = (...lists: Buffer[]): number[] => readKeys(Buffer.concat(lists).toString("base64url")).map(({ id }) => id);

  assert.deepEqual(keys(other, chacha, ours, keyList(1, new Uint8Array(32))), [9, 1]);
  assert.deepEqual(readKeys(ours.toString("base64url"))[0]!.publicKey, new Uint8Array(32).fill(1));
  for (const wrong of ["", "=", "AA", "AAAA", undefined, 7, other.toString("base64url"), chacha.toString("base64url"),
    ours.subarray(0, -1).toString("base64url"), Buffer.concat([ours, Buffer.of(0)]).toString("base64url")]) {
    assert.throws(() => readKeys(wrong), /^HearsayError: relayKey=\.\.\.: must .*; give what `hearsay oblivious-key` printed$/);
  }
});

for (const [name, Client] of CLIENTS) {
  test(`${name}: each report goes alone, sealed, in messages of one length, and the relay sees no more than that`, async () => {
    await withRelay(async (world) => {
      const client = new Client(relayed(world));
      client.record(DAILY, true);
      client.record(WEEKLY, "pro");
      client.record(HOURLY, 3);

      const delivery = await client.flush();
      await client.close();

      assert.deepEqual(counted(client), { recorded: 3, uploaded: 3 });
      assert.ok(delivery.complete);
      assert.equal(world.collector.reports, 3);
      assert.equal(world.collector.bodies.size, 3);
      assert.equal(new Set(world.capsules.map((capsule) => capsule.length)).size, 1);
      assert.equal(new Set(world.capsules.map((capsule) => capsule.subarray(7, 39).toString("hex"))).size, 3);
      for (const { method, url, headers } of world.seen) {
        assert.deepEqual([method, url], ["POST", "/a/relay"]);
        assert.deepEqual([headers["content-type"], headers.accept], ["message/ohttp-req", "message/ohttp-res"]);
        assert.deepEqual([headers.authorization, headers.cookie, headers.referer, headers.origin], [undefined, undefined, undefined, undefined]);
      }
      for (const capsule of world.capsules) {
        for (const canary of ["Bearer", "key", "collector.example", "columns"]) assert.ok(!capsule.includes(canary), canary);
      }
      for (const { request } of world.opened) {
        assert.deepEqual([request.method, request.url], ["POST", "https://collector.example/v1/reports"]);
        assert.deepEqual([...request.headers], [["authorization", "Bearer key"], ["content-type", "application/json"]]);
      }
    });
  });

  test(`${name}: over a relay that loses, every report arrives once, as the same upload in another capsule`, async () => {
    await withRelay(async (world) => {
      const clock = new FakeClock();
      const client = new Client(relayed(world, { clock: clock.read, uptime: clock.uptime }));
      let turn = 0;
      const faults: Behave[] = [
        (response) => response.socket!.destroy(),
        async (response, _, answer) => (await answer(), response.socket!.destroy()),
        (response) => response.writeHead(503).end(),
        usual,
        async (response, _, answer) => response.writeHead(200, OHTTP).end((await answer()).reverse()),
      ];
      world.behave = (...words) => faults[turn++ % faults.length]!(...words);
      for (let day = 0; day < 12; day++) {
        client.record(DAILY, day % 2 === 0);
        for (let pass = 0; pass < 4; pass++) {
          await client.flush();
          clock.time += DAY / 4;
        }
      }
      world.behave = usual;
      for (let pass = 0; pass < 30 && !(await client.flush()).complete; pass++) clock.time += DAY / 4;
      await client.close();

      assert.deepEqual([client.stats().recorded, client.stats().uploaded], [12, 12]);
      assert.ok(client.stats().duplicates > 0);
      assert.equal(world.collector.reports, 12);
      assert.ok(world.collector.isIdentical);
      assert.ok([...world.collector.bodies.values()].some((bodies) => bodies.length > 1));
      assert.equal(new Set(world.capsules.map(String)).size, world.capsules.length);
    });
  });
}

test("reports that go alone leave in an order of chance, those of an earlier day first", async () => {
  const orders = new Set<string>();
  for (let device = 0; device < 40; device++) {
    const [clock, bodies] = [new FakeClock(), [] as string[]];
    const collector = new FakeCollector();
    const alone: Transport = { alone: true, send: (body) => (bodies.push(body), collector.send(body)) };
    const client = new BrowserClient(options({ transport: alone, clock: clock.read, uptime: clock.uptime, caps: { metric_week: "999", week: "999" } }));
    client.record(DAILY, true);
    clock.time += DAY;
    for (const [name, value] of [[WEEKLY, "pro"], [DAILY, false]] as const) client.record(name, value);
    await client.flush();
    await client.close();
    const sent = bodies.map((body) => reportsOf(body)).map(([report]) => report!);
    const names = new Map([...client.registry.metrics.values()].map(({ digest, name }) => [digest, name]));
    assert.equal(bodies.length, 3);
    orders.add(sent.slice(1).map(({ digest }) => names.get(digest)).join());
    assert.equal(names.get(sent[0]!.digest), DAILY);
    assert.ok(sent[0]!.epoch < sent.find(({ digest }, i) => i && names.get(digest) === DAILY)!.epoch);
  }

  assert.equal(orders.size, 2); // chance gives one of the two 40 times once in 10^11 runs
});

test("ten thousand broken responses are read as responses or refused, and nothing else happens", () => {
  const whole = fromHex(
    "0140ca" + "2d" + "0c636f6e74656e742d74797065106170706c69636174696f6e2f6a736f6e" + "0b72657472792d616674657202" + "3132" +
      "0e" + toHex(utf8('{"accepted":1}')) + "00".repeat(40),
  );
  const { status, fields, content } = readResponse(whole);
  assert.deepEqual([status, fields, String.fromCharCode(...content)], [202, [["content-type", "application/json"], ["retry-after", "12"]], '{"accepted":1}']);
  const chance = sequence(17);
  let refused = 0;
  for (let n = 0; n < 10_000; n++) {
    const broken = whole.slice(0, n % 2 ? whole.length : chance(whole.length));
    for (let flips = 0; flips <= n % 4; flips++) broken[chance(broken.length || 1)] = chance(256);
    try {
      const read = readResponse(broken);
      assert.ok(read.status > 199 && read.status < 600 && read.content.length <= broken.length);
    } catch (error) {
      assert.ok(error instanceof RangeError, String(error));
      refused++;
    }
  }

  assert.ok(refused > 2_000 && refused < 9_999, String(refused));
});

/** Returns numbers below n from a fixed sequence. */
function sequence(seed: number): (n: number) => number {
  let state = seed;
  return (n) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * n);
  };
}

test("whatever the relay itself says, nothing is deleted on its word", async () => {
  const acknowledgement = '{"accepted":1,"rejected":[]}';
  const problem = (status: number): string => JSON.stringify({ type: "urn:hearsay:problem:bad-upload", title: "no", status });
  const faults: [expected: string, behave: Behave][] = [
    ["incapable", (response) => response.writeHead(202, { "Content-Type": "application/json" }).end(acknowledgement)],
    ["incapable", (response) => response.writeHead(200, { "Content-Type": "application/json" }).end(acknowledgement)],
    ["incapable", (response) => response.writeHead(400, { "Content-Type": "application/problem+json" }).end(problem(400))],
    ["incapable", (response) => response.writeHead(410, { "Content-Type": "application/problem+json" }).end(problem(410))],
    ["incapable", (response) => response.writeHead(302, { Location: "https://collector.example/v1/reports" }).end()],
    ["transient", (response) => response.writeHead(503, { "Retry-After": "7" }).end(problem(503))],
    ["network", (response) => response.writeHead(200, OHTTP).end(acknowledgement)],
    ["network", (response) => response.writeHead(200, OHTTP).end()],
    ["network", async (response, _, answer) => response.writeHead(200, OHTTP).end((await answer()).subarray(0, -1))],
  ];
  await withRelay(async (world) => {
    let first: Buffer | undefined;
    faults.push(["network", (response) => response.writeHead(200, OHTTP).end(first)]); // the answer to another capsule
    world.behave = async (response, _, answer) => response.writeHead(200, OHTTP).end((first = await answer()));
    const way = transport(world);
    const body = JSON.stringify({ id: "one", columns: [{}] });
    assert.equal(outcomeOf(await way.send(body, 5_000)), "accepted");

    for (const [expected, behave] of faults) {
      world.behave = behave;
      const said = await way.send(body, 5_000).then(outcomeOf, (error: { reason: string; unseen: boolean }) => (assert.ok(!error.unseen), error.reason));
      assert.equal(said, expected, String(behave));
    }
  });
});

test("the collector's own words come through: a refusal, how long to wait, and a retired list", async () => {
  await withRelay(async (world) => {
    const answers: Answer[] = [];
    const problem = JSON.stringify({ type: "urn:hearsay:problem:bad-upload", title: "no", status: 400 });
    const replies = [
      new Response(problem, { status: 400, headers: { "Content-Type": "application/problem+json" } }),
      new Response("", { status: 503, headers: { "Retry-After": "120" } }),
      new Response("a list", { status: 200 }),
    ];
    const sizes: number[] = [];
    world.behave = async (response, capsule) => {
      const inner = await world.gateway.open(capsule);
      world.opened.push(inner);
      sizes.push(capsule.length);
      response.writeHead(200, { ...OHTTP, "Retry-After": "9999" }).end(await inner.answer(replies.shift()!));
    };
    const way = transport(world);
    const body = JSON.stringify({ id: "one", columns: [{}] }).padEnd(1_024);

    for (let i = 0; i < 2; i++) answers.push(await way.send(body, 5_000));
    answers.push(await way.fetch!("/v1/retired", 5_000));

    assert.deepEqual(answers.map(outcomeOf), ["permanent", "transient", "incapable"]);
    assert.deepEqual(answers.map(({ retryAfter }) => retryAfter), [null, 120, null]);
    assert.equal(answers[2]!.body, "a list");
    const { method, url, headers } = world.opened[2]!.request;
    assert.deepEqual([method, url, headers.has("authorization")], ["GET", "https://collector.example/v1/retired", false]);
    assert.equal(new Set(sizes).size, 1);
  });
});

test("a platform without X25519 sends nothing, and no report is sealed in vain", async (context) => {
  await withRelay(async (world) => {
    const client = new BrowserClient(relayed(world));
    const importKey = context.mock.method(crypto.subtle, "importKey", () => Promise.reject(new DOMException("no", "NotSupportedError")));
    client.record(DAILY, true);

    await client.flush();
    importKey.mock.restore();

    assert.deepEqual(counted(client), { recorded: 1, network: 1 });
    assert.equal(world.seen.length, 0);
    await client.close();
  });
});

test("a relay is had whole or not at all", async () => {
  const gateway = await Gateway.of(1);
  const whole = { relay: "https://relay.example", relayKey: gateway.keys, mechanisms: [...everything, relay] };
  const refused: [more: Partial<ClientOptions>, text: RegExp][] = [
    [{ ...whole, mechanisms: everything }, /^part=relay: is not in mechanisms; import \{ relay \} from "hearsay-telemetry\/parts\/relay" and add it$/],
    [{ relay: whole.relay, mechanisms: whole.mechanisms }, /^relayKey=\.\.\.: must be a list/],
    [{ relayKey: whole.relayKey, mechanisms: whole.mechanisms }, /^relay=: must be a URL/],
    [{ ...whole, relay: "http://relay.example" }, /^relay=http:\/\/relay\.example: must begin with https/],
    [{ ...whole, relay: "https://me:secret@relay.example" }, /^relay=relay\.example: must be a URL/],
    [{ ...whole, transport: new FakeCollector() }, /^transport=\.\.\.: must be left out/],
  ];

  for (const [more, text] of refused) {
    assert.throws(() => new NodeClient(options(more)), (error: Error) => (assert.match(error.message, text), true));
  }
  await new NodeClient(options(whole)).close();
});
