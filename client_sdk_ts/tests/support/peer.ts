/** Both ends of Oblivious HTTP by other people's programs: HPKE by hpke-js, binary HTTP by bhttp-js, HKDF by Node. */

import { hkdfSync, randomBytes } from "node:crypto";

import { BHttpDecoder, BHttpEncoder } from "bhttp-js";
import { AeadId, CipherSuite, KdfId, KemId } from "hpke-js";

const SUITE = new CipherSuite({ kem: KemId.DhkemX25519HkdfSha256, kdf: KdfId.HkdfSha256, aead: AeadId.Aes128Gcm });
const ALGORITHMS = Buffer.from("002000010001", "hex");
const HEADER = 7; // bytes: a key's number, and three algorithms
const ENCAPSULATED = 32; // bytes
const SECRET = 16; // bytes

/** A list with one key configuration. */
export function keyList(id: number, publicKey: Uint8Array): Buffer {
  const configuration = Buffer.concat([Buffer.of(id), ALGORITHMS.subarray(0, 2), publicKey, Buffer.from("000400010001", "hex")]);
  return Buffer.concat([Buffer.of(0, configuration.length), configuration]);
}

/** A capsule as its gateway sees it. */
export interface Opened {
  readonly request: Request;
  /** The same, as it was in the capsule. */
  readonly message: Uint8Array;
  /** Seals an answer of so many bytes at least. */
  answer(response: Response, size?: number): Promise<Buffer>;
}

/** Who has a secret key, and opens what is sealed to it. */
export class Gateway {
  private constructor(private readonly key: CryptoKeyPair | CryptoKey, readonly id: number, private readonly publicKey: Uint8Array) {}

  /** One with a new key, or with the `secret` one, of which it cannot say the public key. */
  static async of(id: number, secret?: Uint8Array): Promise<Gateway> {
    if (secret) return new Gateway(await SUITE.kem.deserializePrivateKey(bufferOf(secret)), id, new Uint8Array());
    const pair = await SUITE.kem.generateKeyPair();
    return new Gateway(pair, id, new Uint8Array(await SUITE.kem.serializePublicKey(pair.publicKey)));
  }

  /** What an application compiles in. */
  get keys(): string {
    return keyList(this.id, this.publicKey).toString("base64url");
  }

  /** Rejects what is not sealed to this key. */
  async open(capsule: Uint8Array): Promise<Opened> {
    const header = capsule.slice(0, HEADER);
    const encapsulated = capsule.slice(HEADER, HEADER + ENCAPSULATED);
    if (header[0] !== this.id) throw new RangeError("another key");
    const context = await SUITE.createRecipientContext({ recipientKey: this.key, enc: bufferOf(encapsulated), info: infoOf(header) });
    const message = new Uint8Array(await context.open(bufferOf(capsule.slice(HEADER + ENCAPSULATED))));
    return {
      request: new BHttpDecoder().decodeRequest(message),
      message,
      answer: async (response, size = 0) => {
        const encoded = Buffer.from(await new BHttpEncoder().encodeResponse(response));
        const padded = Buffer.concat([encoded, Buffer.alloc(Math.max(0, size - encoded.length))]);
        const nonce = randomBytes(SECRET);
        const secret = await context.export(bufferOf(Buffer.from("message/bhttp response")), SECRET);
        const { key, iv } = await answerKeys(encapsulated, nonce, secret);
        return Buffer.concat([nonce, Buffer.from(await crypto.subtle.encrypt({ name: "AES-GCM", iv }, key, padded))]);
      },
    };
  }
}

/** Returns a capsule to the first key of a list, and what opens the answer to it; the same of the same `seed`. */
export async function capsuleOf(
  keys: Buffer, request: Request, seed: Uint8Array,
): Promise<{ capsule: Buffer; open: (answer: Buffer) => Promise<Response> }> {
  const configuration = keys.subarray(2);
  const header = Buffer.concat([configuration.subarray(0, 1), ALGORITHMS]);
  const recipientPublicKey = await SUITE.kem.deserializePublicKey(bufferOf(configuration.subarray(3, 3 + ENCAPSULATED)));
  const ekm = await SUITE.kem.deriveKeyPair(bufferOf(seed));
  const context = await SUITE.createSenderContext({ recipientPublicKey, info: infoOf(header), ekm });
  const encapsulated = new Uint8Array(context.enc);
  const sealed = await context.seal(bufferOf(await new BHttpEncoder().encodeRequest(request)));
  return {
    capsule: Buffer.concat([header, encapsulated, Buffer.from(sealed)]),
    open: async (answer) => {
      const secret = await context.export(bufferOf(Buffer.from("message/bhttp response")), SECRET);
      const { key, iv } = await answerKeys(encapsulated, answer.subarray(0, SECRET), secret);
      return new BHttpDecoder().decodeResponse(new Uint8Array(await crypto.subtle.decrypt({ name: "AES-GCM", iv }, key, bufferOf(answer.subarray(SECRET)))));
    },
  };
}

async function answerKeys(encapsulated: Uint8Array, nonce: Uint8Array, secret: ArrayBuffer): Promise<{ key: CryptoKey; iv: ArrayBuffer }> {
  const salt = Buffer.concat([encapsulated, nonce]);
  const derived = (label: string, size: number): ArrayBuffer => hkdfSync("sha256", new Uint8Array(secret), salt, label, size);
  return { key: await crypto.subtle.importKey("raw", derived("key", 16), "AES-GCM", false, ["encrypt", "decrypt"]), iv: derived("nonce", 12) };
}

const infoOf = (header: Uint8Array): ArrayBuffer => bufferOf(Buffer.concat([Buffer.from("message/bhttp request\0"), header]));

const bufferOf = (bytes: Uint8Array): ArrayBuffer => new Uint8Array(bytes).buffer;
