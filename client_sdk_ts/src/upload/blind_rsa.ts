/**
 * Blind RSA signatures, the client's half: the signer cannot link what it signs to what is shown later.
 *
 * That holds for a key whose signing is a permutation; a signer could make another kind on purpose,
 * and then distinguish requests.  So each key comes with a proof, which is checked before it is used.
 *
 * The time of these computations tells nothing to who could use it: the signer, who might measure it,
 * gets one request a token by a connection that begins when all is computed.
 *
 * Source: RFC 9474, sections 4.1 to 4.4: RSABSSA-SHA384-PSS-Deterministic; RFC 8017, sections 9.1.1 and
 * B.2.1.  What the proof is and why it suffices: `client_sdk/upload/blind_rsa.py`.
 */

import { type Bytes, concat, fromNumber, toNumber, utf8 } from "../core/bytes.js";
import { Shake256 } from "../core/hashing.js";
import type { Randomness } from "../core/randomness.js";

/** Bytes of a modulus, and of a signature. */
export const MODULUS_SIZE = 256;
const HASH_SIZE = 48; // bytes of SHA-384, and of a salt
const TOP_BITS = 0x7f; // of the first byte of an encoded message, which is shorter than a modulus by a bit
const PROOF_ROOTS = 8;
const PROOF_LABEL = "hearsay: roots of a token key";
const SQUARES = 16; // the exponent is 2^16 + 1

/** A request, and what only its device knows of it. */
export interface Blinding {
  readonly blinded: Bytes;
  readonly inverse: bigint;
}

/** Returns `message` as the signer may see it. */
export async function blind(message: Bytes, modulus: bigint, randomness: Randomness): Promise<Blinding> {
  for (;;) {
    const salt = fromNumber(randomness.uniform(1n << BigInt(8 * HASH_SIZE)), HASH_SIZE);
    const factor = randomness.uniform(modulus);
    const encoded = toNumber(await encode(message, salt));
    // a product that shares a divisor with the modulus would show which message it hides
    const inverse = inverseOf(factor, modulus);
    if (inverse === null || inverseOf(encoded, modulus) === null) continue;
    return { blinded: fromNumber((encoded * raised(factor, modulus)) % modulus, MODULUS_SIZE), inverse };
  }
}

/** Returns the signature of `message` in a signer's `answer`; null if there is none in it. */
export async function finalize(message: Bytes, modulus: bigint, inverse: bigint, answer: Bytes): Promise<Bytes | null> {
  const number = toNumber(answer);
  if (answer.length !== MODULUS_SIZE || number >= modulus) return null;
  const signature = (number * inverse) % modulus;
  const encoded = fromNumber(raised(signature, modulus), MODULUS_SIZE);
  const [masked, digest] = [encoded.slice(0, -HASH_SIZE - 1), encoded.slice(-HASH_SIZE - 1, -1)];
  const salt = (await withMask(masked, digest)).slice(-HASH_SIZE);
  const right = await encode(message, salt);
  return right.every((byte, i) => byte === encoded[i]) ? fromNumber(signature, MODULUS_SIZE) : null;
}

/** Whether `roots` prove that signing with the key of `modulus` is a permutation. */
export function isPermutation(modulus: bigint, roots: readonly bigint[]): boolean {
  const stream = new Shake256(concat(utf8(PROOF_LABEL), fromNumber(modulus, MODULUS_SIZE)));
  return roots.length === PROOF_ROOTS && roots.every((root) => {
    const target = toNumber(stream.read(MODULUS_SIZE + 16)) % modulus; // uniform up to 2^-128
    return root > 0n && root < modulus && raised(root, modulus) === target;
  });
}

/** Returns EMSA-PSS of `message`. */
async function encode(message: Bytes, salt: Bytes): Promise<Bytes> {
  const digest = await sha384(concat(new Uint8Array(8), await sha384(message), salt));
  const block = new Uint8Array(MODULUS_SIZE - HASH_SIZE - 1);
  block[block.length - HASH_SIZE - 1] = 1;
  block.set(salt, block.length - HASH_SIZE);
  return concat(await withMask(block, digest), digest, Uint8Array.of(0xbc));
}

/** Returns `block` under the mask that `seed` gives; masked twice it is itself. */
async function withMask(block: Bytes, seed: Bytes): Promise<Bytes> {
  const parts: Bytes[] = [];
  for (let i = 0; i * HASH_SIZE < block.length; i++) parts.push(await sha384(concat(seed, fromNumber(BigInt(i), 4))));
  const mask = concat(...parts);
  const masked = block.map((byte, i) => byte ^ mask[i]!);
  masked[0]! &= TOP_BITS;
  return masked;
}

/** Returns a number to the power of the public exponent. */
function raised(number: bigint, modulus: bigint): bigint {
  let power = number;
  for (let i = 0; i < SQUARES; i++) power = (power * power) % modulus;
  return (power * number) % modulus;
}

/** Returns what `number` times is 1; null if it shares a divisor with the modulus.  By Euclid. */
function inverseOf(number: bigint, modulus: bigint): bigint | null {
  let [high, low] = [modulus, number];
  let [before, now] = [0n, 1n];
  while (low) {
    const times = high / low;
    [high, low] = [low, high - times * low];
    [before, now] = [now, before - times * now];
  }
  return high === 1n ? (before + modulus) % modulus : null;
}

const sha384 = async (data: Bytes): Promise<Bytes> => new Uint8Array(await crypto.subtle.digest("SHA-384", data));
