/**
 * Sealing to a public key: HPKE in base mode with X25519, HKDF-SHA256 and AES-128-GCM, for one message.
 *
 * All of it is WebCrypto's.  A curve of our own would be a few hundred bytes, but its time would
 * reveal the secret, as JavaScript's numbers are not constant-time; so a platform without it seals nothing.
 *
 * Source: RFC 9180, sections 4, 4.1, 5.1 and 5.3; RFC 5869 for HKDF, with outputs of at most one block.
 */

import { type Bytes, concat, fromHex, fromNumber, utf8 } from "../core/bytes.js";

/** The identifiers of key encapsulation, key derivation and encryption, as two bytes each. */
export const [KEM, KDF, AEAD] = [0x0020, 0x0001, 0x0001] as const;
/** Bytes of a public and of a secret key. */
export const KEY_SIZE = 32;
/** Bytes of a key and of a nonce of AES-128-GCM. */
export const [AEAD_KEY_SIZE, AEAD_NONCE_SIZE] = [16, 12] as const;

const KEM_SUITE = /* @__PURE__ */ concat(utf8("KEM"), /* @__PURE__ */ two(KEM));
const SUITE = /* @__PURE__ */ concat(utf8("HPKE"), /* @__PURE__ */ two(KEM), /* @__PURE__ */ two(KDF), /* @__PURE__ */ two(AEAD));
const NONE = /* @__PURE__ */ new Uint8Array(0);
const BASE_MODE = 0;
const HASH_SIZE = 32; // bytes
/** What PKCS #8 puts before a secret key of X25519 (RFC 8410). */
const PKCS8 = "302e020100300506032b656e04220420";

/** What a sender shares with the holder of the secret key. */
export interface Sender {
  /** The sender's own public key of this message. */
  readonly encapsulated: Bytes;
  readonly key: Bytes;
  readonly nonce: Bytes;
  /** Returns a further secret of so many bytes, 32 at most. */
  export(context: Uint8Array, size: number): Promise<Bytes>;
}

/** Sets up a message to `publicKey`, of the sender whose `secret` key is new and is used for no other. */
export async function sender(publicKey: Bytes, info: Uint8Array, secret: Bytes): Promise<Sender> {
  const own = await crypto.subtle.importKey("pkcs8", concat(fromHex(PKCS8), secret), "X25519", false, ["deriveBits"]);
  const basePoint = Uint8Array.of(9, ...new Uint8Array(KEY_SIZE - 1));
  const encapsulated = await agree(own, basePoint); // the public key of a secret is its product with the base point
  const shared = await agree(own, publicKey);
  const kemSecret = await labeledExtract(KEM_SUITE, NONE, "eae_prk", shared);
  const sharedSecret = await labeledExpand(KEM_SUITE, kemSecret, "shared_secret", concat(encapsulated, publicKey), HASH_SIZE);
  const context = concat(
    Uint8Array.of(BASE_MODE),
    await labeledExtract(SUITE, NONE, "psk_id_hash", NONE),
    await labeledExtract(SUITE, NONE, "info_hash", info),
  );
  const scheduled = await labeledExtract(SUITE, sharedSecret, "secret", NONE);
  const exporter = await labeledExpand(SUITE, scheduled, "exp", context, HASH_SIZE);
  return {
    encapsulated,
    key: await labeledExpand(SUITE, scheduled, "key", context, AEAD_KEY_SIZE),
    nonce: await labeledExpand(SUITE, scheduled, "base_nonce", context, AEAD_NONCE_SIZE),
    export: (exported, size) => labeledExpand(SUITE, exporter, "sec", exported, size),
  };
}

/** Returns `text` encrypted, with its tag behind it. */
export const seal = async (key: Bytes, nonce: Bytes, text: Bytes, aad: Bytes = NONE): Promise<Bytes> =>
  new Uint8Array(await crypto.subtle.encrypt(parameters(nonce, aad), await aes(key, "encrypt"), text));

/** Returns what `seal` encrypted.  Rejects if it was not made with this key and nonce. */
export const open = async (key: Bytes, nonce: Bytes, sealed: Bytes, aad: Bytes = NONE): Promise<Bytes> =>
  new Uint8Array(await crypto.subtle.decrypt(parameters(nonce, aad), await aes(key, "decrypt"), sealed));

/** HKDF-Extract. */
export const extract = (salt: Bytes, keying: Bytes): Promise<Bytes> => hmac(salt, keying);

/** HKDF-Expand to one block at most. */
export const expand = async (key: Bytes, info: Uint8Array, size: number): Promise<Bytes> =>
  (await hmac(key, concat(info, Uint8Array.of(1)))).slice(0, size);

const labeledExtract = (suite: Bytes, salt: Bytes, label: string, keying: Uint8Array): Promise<Bytes> =>
  extract(salt, concat(utf8("HPKE-v1"), suite, utf8(label), keying));

const labeledExpand = (suite: Bytes, key: Bytes, label: string, info: Uint8Array, size: number): Promise<Bytes> =>
  expand(key, concat(two(size), utf8("HPKE-v1"), suite, utf8(label), info), size);

async function hmac(key: Bytes, message: Bytes): Promise<Bytes> {
  // no key is one of zeros, by the definition of HMAC; engines refuse an empty one
  const material = key.length ? key : new Uint8Array(HASH_SIZE);
  const imported = await crypto.subtle.importKey("raw", material, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  return new Uint8Array(await crypto.subtle.sign("HMAC", imported, message));
}

/** Rejects if the result is zero, as of a public key that is no point to agree on. */
async function agree(own: CryptoKey, point: Bytes): Promise<Bytes> {
  const other = await crypto.subtle.importKey("raw", point, "X25519", false, []);
  const shared = new Uint8Array(await crypto.subtle.deriveBits({ name: "X25519", public: other }, own, 8 * KEY_SIZE));
  if (!shared.some(Boolean)) throw new RangeError("the public key is no point to agree on");
  return shared;
}

const aes = (key: Bytes, use: "encrypt" | "decrypt"): Promise<CryptoKey> => crypto.subtle.importKey("raw", key, "AES-GCM", false, [use]);

const parameters = (iv: Bytes, additionalData: Bytes): AesGcmParams => ({ name: "AES-GCM", iv, additionalData });

function two(number: number): Bytes {
  return fromNumber(BigInt(number), 2);
}
