/**
 * SHA-256, HMAC-SHA-256 and SHAKE-256, synchronously, as WebCrypto has none of them so.
 *
 * A change of the document is one synchronous function, and permanent responses are drawn in it.
 * Neither is meant for secrets from those who share the processor: tables and branches do not depend
 * on what is hashed, and nothing else is promised.
 *
 * Source: FIPS 180-4 (SHA-256), RFC 2104 (HMAC), FIPS 202 (SHAKE-256).
 */

import { type Bytes, concat } from "./bytes.js";

const BLOCK = 64; // bytes of SHA-256
const RATE = 136; // bytes of SHAKE-256

let roots: { squares: Int32Array; cubes: Int32Array } | undefined;

/** Returns the first 32 bits after the point of the square roots of 8 primes, and of the cube roots of 64. */
function primeRoots(): { squares: Int32Array; cubes: Int32Array } {
  if (roots) return roots;
  roots = { squares: new Int32Array(8), cubes: new Int32Array(64) };
  for (let n = 2, i = 0; i < 64; n++) {
    let divisor = 2;
    while (n % divisor) divisor++;
    if (divisor < n) continue;
    if (i < 8) roots.squares[i] = root(n, 2);
    roots.cubes[i++] = root(n, 3);
  }
  return roots;
}

/** Returns 32 bits of a root: the largest whole number whose power is at most n · 2^(32 · power), near a guess. */
function root(n: number, power: number): number {
  const most = BigInt(n) << BigInt(32 * power);
  const raised = (x: bigint): bigint => (power === 2 ? x * x : x * x * x); // some compilers make Math.pow of **
  let largest = BigInt(Math.floor(n ** (1 / power) * 2 ** 32)) + 2n;
  while (raised(largest) > most) largest--;
  return Number(BigInt.asUintN(32, largest));
}

/** Returns the SHA-256 of `data`. */
export function sha256(data: Uint8Array): Bytes {
  const { squares, cubes } = primeRoots();
  const padded = new Uint8Array((((data.length + 8) >> 6) + 1) * BLOCK);
  padded.set(data);
  padded[data.length] = 0x80;
  new DataView(padded.buffer).setBigUint64(padded.length - 8, BigInt(data.length) * 8n);
  const state = squares.slice();
  const words = new Int32Array(64);
  for (let block = 0; block < padded.length; block += BLOCK) compress(state, words, cubes, padded, block);
  const digest = new DataView(new ArrayBuffer(32));
  state.forEach((word, i) => digest.setUint32(4 * i, word));
  return new Uint8Array(digest.buffer);
}

/** Mixes a block into the state.  A registry is thousands of them: so nothing is called, and no list made. */
function compress(state: Int32Array, w: Int32Array, cubes: Int32Array, data: Uint8Array, at: number): void {
  for (let i = 0; i < 16; i++, at += 4) {
    w[i] = (data[at]! << 24) | (data[at + 1]! << 16) | (data[at + 2]! << 8) | data[at + 3]!;
  }
  for (let i = 16; i < 64; i++) {
    const near = w[i - 15]!;
    const far = w[i - 2]!;
    w[i] =
      w[i - 16]! + w[i - 7]! +
      (((near >>> 7) | (near << 25)) ^ ((near >>> 18) | (near << 14)) ^ (near >>> 3)) +
      (((far >>> 17) | (far << 15)) ^ ((far >>> 19) | (far << 13)) ^ (far >>> 10));
  }
  let a = state[0]!;
  let b = state[1]!;
  let c = state[2]!;
  let d = state[3]!;
  let e = state[4]!;
  let f = state[5]!;
  let g = state[6]!;
  let h = state[7]!;
  for (let i = 0; i < 64; i++) {
    const turned = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7));
    const first = (h + turned + ((e & f) ^ (~e & g)) + cubes[i]! + w[i]!) | 0;
    const second = (((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10))) + ((a & b) ^ (a & c) ^ (b & c));
    h = g;
    g = f;
    f = e;
    e = (d + first) | 0;
    d = c;
    c = b;
    b = a;
    a = (first + second) | 0;
  }
  state[0]! += a;
  state[1]! += b;
  state[2]! += c;
  state[3]! += d;
  state[4]! += e;
  state[5]! += f;
  state[6]! += g;
  state[7]! += h;
}

/** Returns the HMAC-SHA-256 of `data` under `key`. */
export function hmacSha256(key: Uint8Array, data: Uint8Array): Bytes {
  const block = new Uint8Array(BLOCK);
  block.set(key.length > BLOCK ? sha256(key) : key);
  const masked = (mask: number): Uint8Array => block.map((byte) => byte ^ mask);
  return sha256(concat(masked(0x5c), sha256(concat(masked(0x36), data))));
}

/** SHAKE-256 of `data`, read like a file: no byte twice. */
export class Shake256 {
  readonly #state = new Uint32Array(50); // 25 lanes, the low half first
  #at = 0; // bytes of the block that were absorbed, then squeezed

  constructor(data: Uint8Array) {
    for (const byte of data) this.#mix(byte);
    this.#xor(this.#at, 0x1f);
    this.#xor(RATE - 1, 0x80);
    this.#at = RATE;
  }

  /** Returns the next `count` bytes. */
  readonly read = (count: number): Bytes => {
    const bytes = new Uint8Array(count);
    for (let i = 0; i < count; i++) {
      if (this.#at === RATE) this.#turn();
      bytes[i] = this.#state[this.#at >> 2]! >>> (8 * (this.#at++ & 3));
    }
    return bytes;
  };

  #mix(byte: number): void {
    this.#xor(this.#at++, byte);
    if (this.#at === RATE) this.#turn();
  }

  #turn(): void {
    permute(this.#state);
    this.#at = 0;
  }

  #xor(at: number, byte: number): void {
    this.#state[at >> 2]! ^= byte << (8 * (at & 3));
  }
}

/** Keccak-f[1600]: theta, rho and pi, chi, iota, 24 times. */
function permute(s: Uint32Array): void {
  const sums = new Uint32Array(10);
  let lfsr = 1;
  for (let round = 0; round < 24; round++) {
    for (let x = 0; x < 10; x++) sums[x] = s[x]! ^ s[x + 10]! ^ s[x + 20]! ^ s[x + 30]! ^ s[x + 40]!;
    for (let x = 0; x < 10; x += 2) {
      const low = sums[(x + 2) % 10]!;
      const high = sums[(x + 3) % 10]!;
      const left = sums[(x + 8) % 10]! ^ ((low << 1) | (high >>> 31));
      const right = sums[(x + 9) % 10]! ^ ((high << 1) | (low >>> 31));
      for (let y = x; y < 50; y += 10) {
        s[y]! ^= left;
        s[y + 1]! ^= right;
      }
    }
    let [x, y] = [1, 0];
    let [low, high] = [s[2]!, s[3]!];
    for (let t = 1, bits = 0; t < 25; t++) {
      bits = (bits + t) & 63;
      [x, y] = [y, (2 * x + 3 * y) % 5];
      const lane = 2 * (5 * y + x);
      const [a, b] = bits & 32 ? [high, low] : [low, high];
      const by = bits & 31;
      [low, high] = [s[lane]!, s[lane + 1]!];
      s[lane] = by ? (a << by) | (b >>> (32 - by)) : a;
      s[lane + 1] = by ? (b << by) | (a >>> (32 - by)) : b;
    }
    for (let row = 0; row < 50; row += 10) {
      sums.set(s.subarray(row, row + 10));
      for (let i = 0; i < 10; i++) s[row + i]! ^= ~sums[(i + 2) % 10]! & sums[(i + 4) % 10]!;
    }
    for (let bit = 0; bit < 7; bit++) {
      const place = (1 << bit) - 1;
      if (lfsr & 1) s[place >> 5]! ^= 1 << (place & 31);
      lfsr = (lfsr << 1) ^ (lfsr >> 7) * 0x171;
    }
  }
}
