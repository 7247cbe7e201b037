/** SHA-256, HMAC and SHAKE-256 against NIST's examples and Node's OpenSSL. */

import assert from "node:assert/strict";
import { createHash, createHmac } from "node:crypto";
import { test } from "node:test";

import { toHex, utf8 } from "../../src/core/bytes.js";
import { hmacSha256, sha256, Shake256 } from "../../src/core/hashing.js";

const EDGES = [...Array(300).keys(), 1000, 4096, 100_003];

function pattern(size: number): Uint8Array {
  return Uint8Array.from({ length: size }, (_, i) => (i * 167 + size) & 255);
}

test("the examples of NIST and RFC 4231 hold", () => {
  const abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
  const long = "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1";
  const empty = "46b9dd2b0ba88d13233b3feb743eeb243fcd52ea62b81b82b50c27646ed5762f";
  const jefe = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";

  assert.equal(toHex(sha256(utf8("abc"))), abc);
  assert.equal(toHex(sha256(utf8("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"))), long);
  assert.equal(toHex(new Shake256(utf8("")).read(32)), empty);
  assert.equal(toHex(hmacSha256(utf8("Jefe"), utf8("what do ya want for nothing?"))), jefe);
});

test("SHA-256 equals OpenSSL's at every length around a block", () => {
  for (const size of EDGES) {
    const data = pattern(size);

    assert.equal(toHex(sha256(data)), createHash("sha256").update(data).digest("hex"), `${size} bytes`);
  }
});

test("HMAC equals OpenSSL's for keys below and above a block", () => {
  for (const size of [0, 1, 32, 63, 64, 65, 200]) {
    const key = pattern(size);
    const data = pattern(size + 3);

    assert.equal(toHex(hmacSha256(key, data)), createHmac("sha256", key).update(data).digest("hex"), `${size} bytes`);
  }
});

test("SHAKE-256 equals OpenSSL's however it is read", () => {
  for (const size of EDGES) {
    const data = pattern(size);
    const stream = new Shake256(data);
    const parts = [0, 1, 7, 128, 136, 1, 273, 0, 64].map((count) => toHex(stream.read(count)));

    assert.equal(parts.join(""), createHash("shake256", { outputLength: 610 }).update(data).digest("hex"), `${size} bytes`);
  }
});
