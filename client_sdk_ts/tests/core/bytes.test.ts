/** Bytes as numbers, hexadecimal and base64url. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { bitLength, concat, fromBase64url, fromHex, fromNumber, toBase64url, toHex, toNumber, utf8 } from "../../src/core/bytes.js";

const SOME = [0, 1, 2, 3, 4, 5, 31, 32, 33, 255].map((size) => Uint8Array.from({ length: size }, (_, i) => (i * 151 + 9 * size) & 255));

test("hexadecimal and base64url are Node's, there and back", () => {
  for (const bytes of SOME) {
    const buffer = Buffer.from(bytes);

    assert.equal(toHex(bytes), buffer.toString("hex"));
    assert.equal(toBase64url(bytes), buffer.toString("base64url"));
    assert.deepEqual(fromHex(toHex(bytes)), bytes);
    assert.deepEqual(fromBase64url(toBase64url(bytes)), bytes);
  }
});

test("base64url of another form is refused", () => {
  for (const text of ["A", "AAAAA", "AB", "AAB", "AA==", "+/AA", "AA A", "ä"]) assert.equal(fromBase64url(text), null, text);
});

test("a number is its bytes, the highest first", () => {
  assert.equal(toNumber(fromHex("")), 0n);
  assert.equal(toNumber(fromHex("010002")), 0x010002n);
  assert.equal(toHex(fromNumber(0x0102n, 4)), "00000102");
  assert.equal(toHex(fromNumber(2n ** 64n - 1n, 8)), "ffffffffffffffff");
});

test("parts are joined in order", () => {
  assert.deepEqual(concat(utf8("ä"), new Uint8Array(0), utf8("b")), new Uint8Array([0xc3, 0xa4, 98]));
});

test("a number has the binary digits that it is written with, at every length", () => {
  for (let size = 0; size < 80; size++) {
    const bytes = Uint8Array.from({ length: size }, (_, i) => (i * 89 + 201) & 255);
    const number = BigInt(`0x0${toHex(bytes)}`);

    assert.equal(toNumber(bytes), number);
    assert.deepEqual(fromNumber(number, size), bytes);
    assert.equal(bitLength(number), BigInt(number === 0n ? 0 : number.toString(2).length));
    assert.equal(bitLength(1n << BigInt(size)), BigInt(size + 1));
  }
});
