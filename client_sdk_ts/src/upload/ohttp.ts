/**
 * Uploads by a relay: it sees an address and no content, the collector sees content and no address.
 *
 * A request is sealed to a key of the collector that is compiled into the application: one that was
 * fetched could be a key for one person.  The relay cannot open or alter it, nor the answer.  So what
 * the relay itself says never deletes anything; and nothing is sent past it.
 *
 * Source: RFC 9458, sections 3.1, 3.2, 4.3 and 4.4.
 */

import { type Bytes, concat, fromBase64url, utf8 } from "../core/bytes.js";
import { systemSource } from "../core/entropy.js";
import { InvalidParameterError, TransportError } from "../core/errors.js";
import type { ByteSource } from "../core/randomness.js";
import { field, readResponse, writeRequest } from "../wire/binary_http.js";
import { AEAD, AEAD_KEY_SIZE, AEAD_NONCE_SIZE, expand, extract, KDF, KEM, KEY_SIZE, open, seal, sender } from "./hpke.js";
import { addressOf, type Answer, type Exchange, type Headers, PATH, requireUrl, retryAfter, type Transport } from "./transport.js";
import { SIZE_CLASSES } from "../wire/reports.js";

const REQUEST_TYPE = "message/ohttp-req";
const RESPONSE_TYPE = "message/ohttp-res";
/** Labels by which a secret belongs to a request or to its response. */
const [REQUEST_LABEL, RESPONSE_LABEL] = ["message/bhttp request", "message/bhttp response"];
const OK = 200;
/** Milliseconds; a relay waits until it has a batch, and a pass of the schedule takes a little longer at most. */
const PATIENCE = 110_000;

/** A key of the collector, as far as this device can use it. */
export interface RelayKey {
  readonly id: number;
  readonly publicKey: Bytes;
}

/** A sealed request, and what opens the response to it and no other. */
export interface Capsule {
  readonly message: Bytes;
  /** Rejects if it was not sealed to this request. */
  open(response: Bytes): Promise<Bytes>;
}

/** Where the relay is, where the collector is, and by which keys. */
export interface RelayOptions {
  readonly endpoint: string;
  readonly writeKey: string;
  readonly relay?: string;
  readonly relayKey?: string;
  /** Cannot be beside a relay, as it would be a way past it. */
  readonly transport?: Transport;
}

/**
 * Returns the keys of a list (application/ohttp-keys) in base64url that this device can use, in its order.
 *
 * Throws InvalidParameterError: it is no such list, or has none of X25519, HKDF-SHA256 and AES-128-GCM.
 */
export function readKeys(text: unknown): RelayKey[] {
  const wrong = (rule: string): InvalidParameterError =>
    new InvalidParameterError("relayKey", "...", `${rule}; give what \`hearsay oblivious-key\` printed`);
  const bytes = typeof text === "string" ? fromBase64url(text) : null;
  if (!bytes?.length) throw wrong("must be a list of key configurations in base64url");
  const view = new DataView(bytes.buffer);
  const keys: RelayKey[] = [];
  for (let at = 0; at < bytes.length;) {
    const end = at + 2 + (at + 2 > bytes.length ? Infinity : view.getUint16(at));
    if (end > bytes.length) throw wrong("must be whole");
    const key = keyOf(bytes.subarray(at + 2, end));
    if (key) keys.push(key);
    at = end;
  }
  if (!keys.length) throw wrong("must have a key of X25519 with HKDF-SHA256 and AES-128-GCM");
  return keys;
}

/** Returns the key of one configuration; null if it is of other algorithms, or broken. */
function keyOf(bytes: Bytes): RelayKey | null {
  const sizes = 3 + KEY_SIZE; // of id, algorithm and key
  if (bytes.length < sizes + 2) return null;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const size = view.getUint16(sizes);
  if (view.getUint16(1) !== KEM || size % 4 || bytes.length !== sizes + 2 + size) return null;
  for (let at = sizes + 2; at < bytes.length; at += 4) {
    if (view.getUint16(at) === KDF && view.getUint16(at + 2) === AEAD) return { id: bytes[0]!, publicKey: bytes.slice(3, sizes) };
  }
  return null;
}

/** Seals `request` to `key`; the `secret` key is new and is used for nothing else. */
export async function encapsulate({ id, publicKey }: RelayKey, request: Bytes, secret: Bytes): Promise<Capsule> {
  const header = Uint8Array.of(id, ...[KEM, KDF, AEAD].flatMap((name) => [name >> 8, name & 255]));
  const context = await sender(publicKey, concat(utf8(REQUEST_LABEL!), Uint8Array.of(0), header), secret);
  const { encapsulated, key, nonce } = context;
  const nonceSize = Math.max(AEAD_NONCE_SIZE, AEAD_KEY_SIZE);
  return {
    message: concat(header, encapsulated, await seal(key, nonce, request)),
    open: async (response) => {
      const shared = await context.export(utf8(RESPONSE_LABEL!), nonceSize);
      const drawn = await extract(concat(encapsulated, response.subarray(0, nonceSize)), shared);
      const keyOfResponse = await expand(drawn, utf8("key"), AEAD_KEY_SIZE);
      return open(keyOfResponse, await expand(drawn, utf8("nonce"), AEAD_NONCE_SIZE), response.slice(nonceSize));
    },
  };
}

/** A transport by the relay.  Throws InvalidParameterError: an address or a key is none. */
export function relayTransport(exchange: Exchange, options: RelayOptions, random: ByteSource = systemSource()): Transport {
  const { relay = "", transport } = options;
  const { base, authorization } = addressOf(options.endpoint, options.writeKey);
  requireUrl("relay", relay);
  const [key] = readKeys(options.relayKey);
  if (transport) throw new InvalidParameterError("transport", "...", "must be left out, as a relay has one of its own");
  const authority = /\/\/([^/]*)/.exec(base)![1]!;
  let more: Headers = {}; // of the last upload, such as a token
  const upload = (body: string): Bytes => {
    const beside = Object.entries(more).map(([name, value]) => [name.toLowerCase(), value] as const);
    const fields = [["authorization", authorization], ["content-type", "application/json"], ...beside] as const;
    return writeRequest({ method: "POST", scheme: "https", authority, path: PATH, fields, content: utf8(body) });
  };
  /** Of the length of an upload, so that the relay cannot tell the two. */
  const question = (path: string): Bytes => {
    const padded = new Uint8Array(upload(" ".repeat(SIZE_CLASSES[0])).length);
    padded.set(writeRequest({ method: "GET", scheme: "https", authority, path, fields: [], content: padded.subarray(0, 0) }));
    return padded;
  };
  const exchanged = async (request: Bytes, timeout: number): Promise<Answer> => {
    const capsule = await sealed(key!, request, new Uint8Array(random(KEY_SIZE)));
    const headers = { "Content-Type": REQUEST_TYPE, "Accept": RESPONSE_TYPE };
    const outer = await exchange({ url: relay, headers, body: capsule.message }, Math.min(timeout, PATIENCE));
    const kind = outer.header("content-type")?.split(";")[0]?.trim().toLowerCase();
    if (outer.status === OK && kind === RESPONSE_TYPE) return opened(capsule, outer.bytes());
    // of a relay or proxy, only the time to come again is believed
    const status = outer.status === OK ? 0 : outer.status;
    return { status, retryAfter: retryAfter(status, outer.header("retry-after"), outer.header("date")) };
  };
  return {
    alone: true,
    send: (body, timeout, headers = {}) => {
      more = headers;
      return exchanged(upload(body), timeout);
    },
    fetch: (path, timeout) => exchanged(question(path), timeout),
  };
}

/** Throws TransportError: this platform cannot seal, so nothing was sent. */
async function sealed(key: RelayKey, request: Bytes, secret: Bytes): Promise<Capsule> {
  try {
    return await encapsulate(key, request, secret);
  } catch (cause) {
    throw new TransportError("nothing is sent: this platform has no X25519 in WebCrypto, or relayKey is no point of it", true, { cause });
  }
}

/** Throws TransportError: it is no answer of the collector to this request. */
async function opened(capsule: Capsule, response: Bytes): Promise<Answer> {
  try {
    const answer = readResponse(await capsule.open(response));
    const { status, content } = answer;
    return {
      status,
      retryAfter: retryAfter(status, field(answer, "retry-after"), field(answer, "date")),
      contentType: field(answer, "content-type") ?? "",
      body: new TextDecoder().decode(content),
    };
  } catch {
    throw new TransportError("no answer: what came by the relay is none of the collector");
  }
}
