/** Does what its argument says with the JSON of its input: Oblivious HTTP of this package, and of other people's. */

import { readFileSync } from "node:fs";

import { fromHex, toHex } from "../../src/core/bytes.js";
import { type BinaryRequest, readResponse, writeRequest } from "../../src/wire/binary_http.js";
import { encapsulate, readKeys, relayTransport } from "../../src/upload/ohttp.js";
import type { Exchange } from "../../src/upload/transport.js";
import { capsuleOf, Gateway } from "../support/peer.js";

type Fields = [name: string, value: string][];
type WrittenRequest = Omit<BinaryRequest, "content"> & { content: string };

const programs: Record<string, (input: never) => unknown> = {
  responses: (messages: string[]) => messages.map((message) => refused(() => {
    const { status, fields, content, trailers } = readResponse(fromHex(message));
    return { status, fields, content: toHex(content), trailers };
  })),

  requests: (requests: WrittenRequest[]) =>
    requests.map((request) => toHex(writeRequest({ ...request, content: fromHex(request.content) }))),

  keys: (lists: string[]) => lists.map((list) => refused(() =>
    readKeys(list).map(({ id, publicKey }) => ({ key_id: id, public_key: toHex(publicKey) })))),

  capsule: async ({ list, request, secret, answers }: { list: string; request: string; secret: string; answers: string[] }) => {
    const capsule = await encapsulate(readKeys(list)[0]!, fromHex(request), fromHex(secret));
    const opened = answers.map((answer) => capsule.open(fromHex(answer)).then(toHex, () => null));
    return { message: toHex(capsule.message), answers: await Promise.all(opened) };
  },

  /** The requests in the capsules of an upload and of a question. */
  sent: async ({ endpoint, writeKey, body, path }: { endpoint: string; writeKey: string; body: string; path: string }) => {
    const gateway = await Gateway.of(1);
    const messages: string[] = [];
    const exchange: Exchange = async ({ body: capsule }) => {
      messages.push(toHex((await gateway.open(capsule as Uint8Array)).message));
      return { status: 503, header: () => null, text: () => "", bytes: () => new Uint8Array(0) };
    };
    const transport = relayTransport(exchange, { endpoint, writeKey, relay: "https://relay.example", relayKey: gateway.keys });
    await transport.send(body, 1_000);
    await transport.fetch!(path, 1_000);
    return messages;
  },

  /** Opens a capsule by hpke-js and bhttp-js, and answers it. */
  open: async ({ secret, id, capsule, status, fields, content }: { secret: string; id: number; capsule: string; status: number; fields: Fields; content: string }) => {
    const opened = await (await Gateway.of(id, fromHex(secret))).open(fromHex(capsule));
    const { method, url, headers } = opened.request;
    const answer = await opened.answer(new Response(content, { status, headers: fields }));
    return { method, url, fields: [...headers], content: await opened.request.text(), answer: answer.toString("hex") };
  },

  /** Seals a request by hpke-js and bhttp-js; opens an answer to it, if there is one. */
  seal: async ({ list, seed, url, fields, content, answer }: { list: string; seed: string; url: string; fields: Fields; content: string; answer: string | null }) => {
    const request = new Request(url, { method: "POST", headers: fields, body: content });
    const { capsule, open } = await capsuleOf(Buffer.from(list, "hex"), request, fromHex(seed));
    const response = answer === null ? null : await open(Buffer.from(answer, "hex"));
    return {
      capsule: capsule.toString("hex"),
      response: response && { status: response.status, fields: [...response.headers], content: await response.text() },
    };
  },
};

/** Returns null where what is read is refused, as it must be. */
function refused<T>(read: () => T): T | null {
  try {
    return read();
  } catch (error) {
    if (error instanceof RangeError || (error as Error).name === "HearsayError") return null;
    throw error;
  }
}

const input = JSON.parse(readFileSync(0, "utf8")) as never;
console.log(JSON.stringify(await programs[process.argv[2] ?? ""]!(input)));
