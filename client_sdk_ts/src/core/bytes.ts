/** Bytes as numbers, hexadecimal, base64url and text. */

export type Bytes = Uint8Array<ArrayBuffer>;

const SHORT = 32; // bytes
const DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/** Returns the bytes of `text` in UTF-8. */
export function utf8(text: string): Bytes {
  return new TextEncoder().encode(text);
}

/** Returns all `parts`, one after the other. */
export function concat(...parts: readonly Uint8Array[]): Bytes {
  const all = new Uint8Array(parts.reduce((size, part) => size + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

/** Returns `bytes` in lower-case hexadecimal. */
export function toHex(bytes: Uint8Array): string {
  let hex = "";
  for (const byte of bytes) hex += (byte < 16 ? "0" : "") + byte.toString(16);
  return hex;
}

/** Returns the bytes of hexadecimal digits, an even number of them. */
export function fromHex(hex: string): Bytes {
  const bytes = new Uint8Array(hex.length >> 1);
  for (let i = 0; i < bytes.length; i++) bytes[i] = parseInt(hex.slice(2 * i, 2 * i + 2), 16);
  return bytes;
}

/** Returns the big-endian number of `bytes`; 0 of none. */
export function toNumber(bytes: Uint8Array): bigint {
  if (bytes.length > SHORT) return BigInt(`0x${toHex(bytes)}`); // at once, as shifts of long numbers add up
  let number = 0n;
  let i = bytes.length & 3;
  for (let j = 0; j < i; j++) number = (number << 8n) | BigInt(bytes[j]!);
  for (; i < bytes.length; i += 4) {
    const word = ((bytes[i]! << 24) | (bytes[i + 1]! << 16) | (bytes[i + 2]! << 8) | bytes[i + 3]!) >>> 0;
    number = (number << 32n) | BigInt(word);
  }
  return number;
}

/** Returns how many binary digits `number` has; none of 0. */
export function bitLength(number: bigint): bigint {
  let bits = 32;
  for (; number >> 32n; number >>= 32n) bits += 32;
  return BigInt(bits - Math.clz32(Number(number)));
}

/** Returns `number`, which fits, as `size` big-endian bytes. */
export function fromNumber(number: bigint, size: number): Bytes {
  if (size > SHORT) return fromHex(number.toString(16).padStart(2 * size, "0"));
  const bytes = new Uint8Array(size);
  for (let i = size; i--; number >>= 8n) bytes[i] = Number(number & 255n);
  return bytes;
}

/** Returns `bytes` in base64url without padding. */
export function toBase64url(bytes: Uint8Array): string {
  let text = "";
  for (let i = 0; i < bytes.length; i += 3) {
    const word = (bytes[i]! << 16) | ((bytes[i + 1] ?? 0) << 8) | (bytes[i + 2] ?? 0);
    for (let j = 0; j < Math.min(4, bytes.length - i + 1); j++) text += DIGITS[(word >> (18 - 6 * j)) & 63];
  }
  return text;
}

/** Returns the bytes of base64url without padding, or null if `text` is none, or not the shortest form. */
export function fromBase64url(text: string): Bytes | null {
  const bytes = new Uint8Array((text.length * 3) >> 2);
  let word = 0;
  let bits = 0;
  let size = 0;
  for (const digit of text) {
    const value = DIGITS.indexOf(digit);
    if (value < 0) return null;
    word = ((word << 6) | value) & 0xffff;
    bits += 6;
    if (bits > 7) bytes[size++] = word >> (bits -= 8);
  }
  return bits > 5 || word & ((1 << bits) - 1) ? null : bytes;
}
