/** Laws of the two transports, on a real server that answers as collectors, proxies and portals do. */

import assert from "node:assert/strict";
import { Agent, createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { type AddressInfo, connect, type NetConnectOpts, type Socket } from "node:net";
import { test } from "node:test";

import { fetchTransport, type Transport } from "../../src/index.js";
import { nodeTransport } from "../../src/node.js";
import { outcomeOf } from "../../src/upload/transport.js";

type Handler = (request: IncomingMessage, response: ServerResponse, body: string) => void;

const TRANSPORTS: [name: string, make: (endpoint: string, writeKey: string) => Transport][] = [
  ["fetch", fetchTransport],
  ["node", nodeTransport],
];

/** Calls `use` with a transport to a server that answers by `handle`, and with the requests that came. */
async function serving(
  make: (endpoint: string, writeKey: string) => Transport, handle: Handler, use: (transport: Transport) => Promise<void>,
): Promise<IncomingMessage[]> {
  const requests: IncomingMessage[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((request, response) => {
    requests.push(request);
    let body = "";
    request.on("data", (part) => (body += String(part)));
    request.on("end", () => handle(request, response, body));
    request.on("error", () => undefined);
  });
  server.on("connection", (socket: Socket) => void sockets.add(socket));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    await use(make(`http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/reports/`, "a-key"));
  } finally {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  }
  return requests;
}

const ACCEPTED = '{"accepted":1,"rejected":[]}';

for (const [name, make] of TRANSPORTS) {
  test(`${name}: an upload has the same few headers on every device, and no cookie`, async () => {
    const bodies: string[] = [];
    const handle: Handler = (_, response, body) => {
      bodies.push(body);
      response.writeHead(202, { "Set-Cookie": "id=1; Path=/", "Content-Type": "application/json" }).end(ACCEPTED);
    };
    const requests = await serving(make, handle, async (transport) => {
      for (let i = 0; i < 2; i++) assert.equal(outcomeOf(await transport.send("{}   ", 5_000)), "accepted");
      await transport.fetch!("/v1/retired", 5_000);
    });

    const [first, second, fetched] = requests as [IncomingMessage, IncomingMessage, IncomingMessage];
    assert.deepEqual([first.method, first.url, first.headers.authorization], ["POST", "/v1/reports", "Bearer a-key"]);
    assert.deepEqual([fetched.method, fetched.url, fetched.headers.authorization], ["GET", "/v1/retired", undefined]);
    assert.deepEqual(first.rawHeaders.filter((_, i) => i % 2 === 0), second.rawHeaders.filter((_, i) => i % 2 === 0));
    assert.deepEqual(bodies.slice(0, 2), ["{}   ", "{}   "]);
    for (const { headers } of requests) assert.deepEqual([headers.cookie, headers.referer, headers.origin], [undefined, undefined, undefined]);
    if (name === "node") {
      assert.deepEqual(Object.keys(first.headers).sort(), [
        "accept", "accept-encoding", "authorization", "connection", "content-length", "content-type", "host", "user-agent",
      ]);
      assert.deepEqual([first.headers["user-agent"], first.headers.connection], ["hearsay/1", "close"]);
      assert.equal(new Set(requests.map(({ socket }) => socket)).size, 3); // a connection of its own each
    }
  });

  test(`${name}: a redirect is not followed`, async () => {
    const handle: Handler = (_, response) => response.writeHead(302, { Location: "/elsewhere" }).end();
    const requests = await serving(make, handle, async (transport) => {
      assert.equal(outcomeOf(await transport.send("{}", 5_000)), "incapable");
    });

    assert.deepEqual(requests.map(({ url }) => url), ["/v1/reports"]);
  });

  test(`${name}: how long to wait is read, by the collector's own clock`, async () => {
    const dates = { "Date": "Wed, 21 Oct 2026 07:28:00 GMT", "Retry-After": "Wed, 21 Oct 2026 07:29:30 GMT" };
    for (const [headers, seconds] of [[{ "Retry-After": "120" }, 120], [dates, 90], [{}, null]] as const) {
      await serving(make, (_, response) => response.writeHead(429, headers).end(), async (transport) => {
        const answer = await transport.send("{}", 5_000);
        assert.deepEqual([answer.status, answer.retryAfter], [429, seconds]);
      });
    }
  });

  test(`${name}: who never answers, resets, or hangs up is no answer`, async () => {
    const handlers: Handler[] = [
      () => undefined,
      (request) => request.socket.resetAndDestroy(),
      (request) => request.socket.end("nonsense\r\n\r\n"),
      (request) => request.socket.end(),
    ];
    for (const handle of handlers) {
      await serving(make, handle, async (transport) => {
        await assert.rejects(transport.send("{}", 300), { reason: "network", unseen: false });
      });
    }
  });

  test(`${name}: a status counts although its body is cut, endless or long`, async () => {
    const handlers: Handler[] = [
      (_, response) => response.writeHead(503, { "Content-Length": "10" }).write("ab", () => response.socket!.destroy()),
      (_, response) => {
        response.writeHead(503);
        const more = setInterval(() => response.write("x".repeat(4_096)), 1);
        response.on("close", () => clearInterval(more));
      },
      (_, response) => response.writeHead(503).end("x".repeat(1 << 20)),
    ];
    for (const handle of handlers) {
      await serving(make, handle, async (transport) => {
        const answer = await transport.send("{}", 5_000);
        assert.equal(answer.status, 503);
        assert.ok(answer.body!.length < 200_000);
      });
    }
  });
}

test("node: nobody there to connect to has seen nothing", async () => {
  await assert.rejects(nodeTransport("http://127.0.0.1:9", "key").send("{}", 2_000), { reason: "network", unseen: true });
  await assert.rejects(nodeTransport("https://nowhere.invalid", "key").send("{}", 5_000), { reason: "network", unseen: true });
});

test("node: who hangs up has seen the upload, also if a proxy's agent made the connection", async (context) => {
  type Give = (error: null, socket: Socket) => void;
  type Connecting = { createConnection(to: NetConnectOpts, give: Give): void };
  // editors and tracers have all agents connect by way of a proxy, and give the socket once it is there
  context.mock.method(Agent.prototype as unknown as Connecting, "createConnection", (to: NetConnectOpts, give: Give) => {
    const socket = connect(to).once("connect", () => give(null, socket));
  });

  const requests = await serving(nodeTransport, (request) => request.socket.destroy(), async (transport) => {
    await assert.rejects(transport.send("{}", 2_000), { reason: "network", unseen: false });
  });

  assert.equal(requests.length, 1);
});
