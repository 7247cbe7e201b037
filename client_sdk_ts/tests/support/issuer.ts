/** An issuer in memory, in plain integers: that of privacypass-ts takes a second for each token. */

import { createHash, generateKeyPairSync } from "node:crypto";

import { util } from "@cloudflare/privacypass-ts";

import { fromNumber, toNumber } from "../../src/core/bytes.js";
import { epochOf } from "../../src/core/epoch.js";
import { Shake256 } from "../../src/core/hashing.js";
import type { Exchange, Request } from "../../src/upload/transport.js";

const SIZE = 256; // bytes of a modulus

interface SigningKey {
  readonly sign: (number: bigint) => Uint8Array<ArrayBuffer>;
  /** As DER: of RSASSA-PSS, and of RSA for WebCrypto. */
  readonly key: Uint8Array;
  readonly plain: Uint8Array<ArrayBuffer>;
  readonly proof: string[];
}

export const NAME = "issuer.example";
export const weekOf = (milliseconds: number): number => epochOf("7d", milliseconds / 1_000);

/** Keys take a second to make, so all tests share these. */
let made: SigningKey[] | undefined;

/** Answers as an issuer does, or by `refuse`; counts what it was asked. */
export class FakeIssuer {
  readonly requests: Request[] = [];
  refuse: ((request: Request) => number | undefined) | undefined;
  /** The body of a refusal; by default that of an issuer which has given all. */
  says = '{"type": "urn:hearsay:problem:tokens-given", "status": 429}\n';

  private constructor(readonly keys: readonly SigningKey[], readonly first: number, readonly tokens: number) {}

  static of(first: number, tokens = 3): FakeIssuer {
    return new FakeIssuer((made ??= [newKey(), newKey()]), first, tokens);
  }

  get plan(): Record<string, unknown> {
    const ids = this.keys.map(({ key }) => createHash("sha256").update(key).digest("hex"));
    return { issuer: NAME, first: this.first, tokens: this.tokens, key_ids: ids };
  }

  /** What applications are built with. */
  get digest(): string {
    return createHash("sha256").update(JSON.stringify(this.plan)).digest("base64url");
  }

  directory(): Record<string, unknown> {
    const keys = this.keys.map(({ key, proof }, place) => ({
      "token-type": 2, "token-key": Buffer.from(key).toString("base64url"), "hearsay-week": this.first + place, "hearsay-proof": proof,
    }));
    return { "issuer-request-uri": "/token-request", "token-keys": keys, "hearsay-plan": this.plan };
  }

  /** How many tokens it was asked for. */
  get asked(): number {
    return this.requests.filter(({ body }) => body).length;
  }

  readonly exchange: Exchange = (request) => Promise.resolve(this.#answer(request));

  #answer(request: Request): Awaited<ReturnType<Exchange>> {
    this.requests.push(request);
    const status = this.refuse?.(request);
    if (status !== undefined) return responseOf(status, "application/problem+json", Uint8Array.from(Buffer.from(this.says)));
    if (!request.body) {
      return responseOf(200, "application/private-token-issuer-directory", Uint8Array.from(Buffer.from(JSON.stringify(this.directory()))));
    }
    const body = request.body as Uint8Array;
    const signing = this.keys.find(({ key }) => createHash("sha256").update(key).digest().at(-1) === body[2])!;
    return responseOf(200, "application/private-token-response", signing.sign(toNumber(body.slice(3))));
  }
}

const responseOf = (status: number, kind: string, body: Uint8Array<ArrayBuffer>): Awaited<ReturnType<Exchange>> =>
  ({ status, header: (name) => (name === "content-type" ? kind : null), text: () => Buffer.from(body).toString(), bytes: () => body });

function newKey(): SigningKey {
  const pair = generateKeyPairSync("rsa", { modulusLength: 8 * SIZE });
  const { n, d } = pair.privateKey.export({ format: "jwk" });
  const [modulus, exponent] = [n!, d!].map((text) => toNumber(Uint8Array.from(Buffer.from(text, "base64url")))) as [bigint, bigint];
  const sign = (number: bigint): Uint8Array<ArrayBuffer> => fromNumber(power(number, exponent, modulus), SIZE);
  const stream = new Shake256(Buffer.concat([Buffer.from("hearsay: roots of a token key"), fromNumber(modulus, SIZE)]));
  const targets = Array.from({ length: 8 }, () => toNumber(stream.read(SIZE + 16)) % modulus);
  const plain = Uint8Array.from(pair.publicKey.export({ format: "der", type: "spki" }));
  return { sign, key: util.convertEncToRSASSAPSS(plain), plain, proof: targets.map((target) => Buffer.from(sign(target)).toString("base64url")) };
}

function power(base: bigint, exponent: bigint, modulus: bigint): bigint {
  let result = 1n;
  for (; exponent; exponent >>= 1n, base = (base * base) % modulus) if (exponent & 1n) result = (result * base) % modulus;
  return result;
}
