/**
 * A reserve file: it takes up room beside the document, which is given up on a full disk.
 *
 * A document is replaced by a new one, which takes room even if it is shorter.  Without the reserve an
 * outbox would never empty again on a full disk, and a user could not withdraw what is in it.
 */

import { randomFillSync } from "node:crypto";
import { join } from "node:path";

import { codeOf, remove } from "./claims.js";

export const RESERVE_FILE = "ballast";
/** Bytes; a document of many metrics with a full outbox. */
const SIZE = 256 * 1024;

/** Returns what takes up the room: by chance, as file systems store nothing for zeros. */
export const reserveBytes = (): Uint8Array => randomFillSync(new Uint8Array(SIZE));

/** Gives up the reserve of `folder`, if it can. */
export function dropReserve(folder: string): void {
  try {
    remove(join(folder, RESERVE_FILE));
  } catch {
    // then there is no more room than before
  }
}

/** Whether an `error` of the system says that there is no room. */
export const meansFull = (error: unknown): boolean => ["ENOSPC", "EDQUOT"].includes(codeOf(error) ?? "");
