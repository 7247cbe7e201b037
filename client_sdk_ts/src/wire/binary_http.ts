/**
 * HTTP messages as bytes: requests of known length written, responses of both forms read.
 *
 * Source: RFC 9292; a number is one of QUIC (RFC 9000, section 16).
 */

import { type Bytes, concat, fromNumber, toNumber, utf8 } from "../core/bytes.js";

type Fields = readonly (readonly [name: string, value: string])[];

/** A request, whose names of fields are in lower case. */
export interface BinaryRequest {
  readonly method: string;
  readonly scheme: string;
  readonly authority: string;
  readonly path: string;
  readonly fields: Fields;
  readonly content: Uint8Array;
}

/** A final response; the informational ones before it are left out. */
export interface BinaryResponse {
  readonly status: number;
  readonly fields: Fields;
  readonly content: Bytes;
  readonly trailers: Fields;
}

/** The framing indicators of requests and responses of known length, and of responses of any. */
const [REQUEST, RESPONSE, CHUNKED_RESPONSE] = [0, 1, 3];
const FORBIDDEN = /^:(method|scheme|authority|path|status)$/;
const NAME = /^:?[!#$%&'*+\-.^_`|~\da-z]+$/;
/** What no value of HTTP/2 has (RFC 9113, section 8.2.1). */
const NO_VALUE = /[\0\r\n]|^[ \t]|[ \t]$/;

/** Returns `request` as a message of known length, without trailers. */
export function writeRequest({ method, scheme, authority, path, fields, content }: BinaryRequest): Bytes {
  const control = [method, scheme, authority, path].map((text) => prefixed(utf8(text)));
  const lines = fields.flatMap((field) => field.map((text) => prefixed(utf8(text))));
  return concat(Uint8Array.of(REQUEST!), ...control, prefixed(concat(...lines)), prefixed(content), writeNumber(0));
}

/** Returns the response in `message`.  Throws RangeError: it is none, or it was cut where none may be. */
export function readResponse(message: Bytes): BinaryResponse {
  const reader = new Reader(message);
  const form = reader.number();
  if (form !== RESPONSE && form !== CHUNKED_RESPONSE) throw new RangeError("must be a response");
  const known = form === RESPONSE;
  const section = (): Fields => fieldsOf(known ? new Reader(reader.prefixed()) : reader, known);
  let status = reader.number();
  for (; status > 99 && status < 200; status = reader.number()) section();
  if (status < 200 || status > 599) throw new RangeError("must have a final status");
  const fields = section();
  const content = known ? reader.prefixed() : reader.chunks();
  const trailers = section();
  reader.padding();
  return { status, fields, content, trailers };
}

/** Returns the value of a field; several of that name as one; null if there is none. */
export function field({ fields }: BinaryResponse, name: string): string | null {
  const values = fields.filter(([known]) => known === name).map(([, value]) => value);
  return values.length ? values.join(", ") : null;
}

/** Returns `number` in as few bytes as there may be. */
export function writeNumber(number: number): Bytes {
  const power = [2 ** 6, 2 ** 14, 2 ** 30].filter((limit) => number >= limit).length;
  const size = 1 << power;
  const bytes = fromNumber(BigInt(number), size);
  bytes[0]! |= power << 6;
  return bytes;
}

const prefixed = (bytes: Uint8Array): Bytes => concat(writeNumber(bytes.length), bytes);

/** Reads field lines to the end, or to an empty name if their length is not `known`. */
function fieldsOf(reader: Reader, known: boolean): Fields {
  const fields: [name: string, value: string][] = [];
  for (;;) {
    const size = reader.number(known || !fields.length);
    if (!size) break;
    const name = latin(reader.take(size));
    const value = latin(reader.take(reader.number(false)));
    const late = name.startsWith(":") && fields.some(([before]) => !before.startsWith(":"));
    if (!NAME.test(name) || FORBIDDEN.test(name) || late || NO_VALUE.test(value)) throw new RangeError("must have valid fields");
    fields.push([name, value]);
  }
  if (known && !reader.atEnd) throw new RangeError("must have no field without a name");
  return fields;
}

/** Fields are bytes; bytes beyond ASCII have no meaning. */
const latin = (bytes: Uint8Array): string => Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");

/** Reads from the beginning on.  Throws RangeError where the bytes end too early. */
class Reader {
  #at = 0;

  constructor(private readonly bytes: Bytes) {}

  get atEnd(): boolean {
    return this.#at === this.bytes.length;
  }

  take(size: number): Bytes {
    if (size > this.bytes.length - this.#at) throw new RangeError("must be whole");
    return this.bytes.slice(this.#at, (this.#at += size));
  }

  /** Reads a number; 0 at the end, if the message `mayEnd` here. */
  number(mayEnd = true): number {
    if (mayEnd && this.atEnd) return 0;
    const bytes = this.take(1 << ((this.bytes[this.#at] ?? 0) >> 6));
    bytes[0]! &= 63;
    return Number(toNumber(bytes));
  }

  prefixed(): Bytes {
    return this.take(this.number());
  }

  /** Reads content in chunks, each after its length; the last one is empty. */
  chunks(): Bytes {
    const chunks: Bytes[] = [];
    for (;;) {
      const size = this.number(!chunks.length);
      if (!size) return concat(...chunks);
      chunks.push(this.take(size));
    }
  }

  padding(): void {
    if (this.bytes.subarray(this.#at).some(Boolean)) throw new RangeError("must be padded with zeros");
  }
}
