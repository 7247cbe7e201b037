/** Draws in a process or worker of its own, and tells what it drew: from its source, or one that it was handed. */

import { parentPort, workerData } from "node:worker_threads";

import { fromHex, toHex } from "../../src/core/bytes.js";
import { systemSource } from "../../src/core/entropy.js";

const DRAWS = 500; // of 16 bytes: several times what is taken ahead

const handed = (workerData as string | null) ?? process.env.HANDED;

/** Planted bug: bytes that another one reads too. */
function handedSource(bytes: Uint8Array): (count: number) => Uint8Array {
  let at = 0;
  return (count) => bytes.slice(at, (at += count));
}

const source = handed ? handedSource(fromHex(handed)) : systemSource();
const drawn = Array.from({ length: handed ? 8 : DRAWS }, () => toHex(source(16)));
if (parentPort) parentPort.postMessage(drawn);
else process.send!(drawn, () => process.disconnect());
