/**
 * Sealed uploads: bytes that wait for an acknowledgement and never change again.
 *
 * Whatever happens on the way, a retry can only repeat what was sent, never draw or reveal more.  A
 * sealed upload that outlives its first try has an unknown outcome.  If it was certainly not stored,
 * its reports may be sealed anew: after no connection, as if never sealed; after a refusal of its
 * length in smaller uploads without other reports, as the refusing server knows them.
 *
 * Functions of the document: what a process remembers beside it changes only once that is kept.
 */

import { fromNumber, toBase64url } from "../core/bytes.js";
import type { Randomness } from "../core/randomness.js";
import type { SealedUpload, State, WaitingReport } from "../storage/state.js";
import type { Purse } from "./tokens.js";
import { MAX_BODY, SIZE_CLASSES, sealPadded } from "../wire/reports.js";

/** Uploads from which on, while they fail, only what is a day old is sealed. */
const MAX_SEALED = 5;
/** Reports of one upload; 20 kB as JSON. */
const MAX_REPORTS = 200;
/** Reports of one upload where nothing else may be in it. */
const ALONE = 1;
/** Columns of one upload; one a metric and epoch. */
const MAX_COLUMNS = 256;
/** Bytes of JSON around payloads, and around segment and columns. */
const COLUMN_FRAME = 80;
const UPLOAD_FRAME = 128;
/** How much smaller an upload becomes that was too large: as size classes are. */
const SMALLER = 4;
/** Bytes; random, so two uploads never share one. */
const ID_SIZE = 16;

/** An upload on its way. */
export interface Upload extends SealedUpload {
  /** What it was sealed from, until its first try is over: before, it cannot have been stored. */
  readonly rows: readonly WaitingReport[];
  /** Whether its reports were in an upload that was refused. */
  readonly known: boolean;
}

/** What one process remembers of what it sealed. */
export interface Memory {
  /** Reports of one upload. */
  readonly reports: number;
  /** What has a token for each upload. */
  readonly purse: Purse | undefined;
  /** Bytes of a body; less once a proxy has refused that much. */
  body: number;
  /** Pieces of refused uploads that were never tried. */
  pieces: readonly Upload[];
}

export const newMemory = (alone = false, purse?: Purse): Memory =>
  ({ reports: alone ? ALONE : MAX_REPORTS, purse, body: MAX_BODY, pieces: [] });

/** Returns the upload whose turn it is; what was sealed comes first and, while tries fail, last. */
export function take(
  state: State, day: number, memory: Memory, randomness: Randomness, failing: boolean,
): Upload | null {
  const waits = state.uploads.length;
  const first = (): Upload | null => uploadOf(state, state.uploads[0], memory);
  if (waits && !failing) return first();
  // during an outage few uploads are sealed in vain: one a day and segment
  if (waits >= MAX_SEALED && state.reports.every((report) => report.day >= day)) return first();
  return seal(state, day, memory, randomness) ?? first();
}

/** Returns the sealed upload of that id; null if it is gone. */
export const sealed = (state: State, id: string, memory: Memory): Upload | null =>
  uploadOf(state, state.uploads.find((upload) => upload.id === id), memory);

/** Returns an upload that was never tried: a piece, or reports of one segment; null if none waits, or has a token. */
export function seal(state: State, day: number, memory: Memory, randomness: Randomness): Upload | null {
  const piece = memory.pieces.find((known) => isUntouched(state, known));
  if (piece) return piece;
  const segment = segmentOf(state, randomness);
  if (segment === null || (memory.purse?.required && !memory.purse.has(state, day))) return null;
  const waiting = state.reports.filter((report) => textOf(report) === segment);
  const first = memory.reports > ALONE ? 0 : passedOver(waiting, randomness);
  const rows = fitting(waiting.slice(first, first + memory.reports), memory.body);
  state.reports = state.reports.filter((report) => !rows.includes(report));
  return insert(state, day, rows, memory, randomness, false);
}

/**
 * Seals the reports of `refused`, which was too large, in smaller uploads; returns what to remember.
 *
 * Only at its first try: only the refusal of an unread body proves that it was not stored.  Null, and
 * nothing happens, if it cannot be made smaller or another process came first.
 */
export function sealSmaller(
  state: State, refused: Upload, day: number, memory: Memory, randomness: Randomness,
): Memory | null {
  const body = Math.min(memory.body, Math.floor(refused.body.length / SMALLER));
  if (refused.rows.length < 2 || refused.body.length / SMALLER < SIZE_CLASSES[0] || !retract(state, refused)) {
    return null;
  }
  const split = (upload: Upload): Upload[] => {
    const pieces: Upload[] = [];
    for (let rows = upload.rows; rows.length;) {
      const fit = fitting(rows, body);
      pieces.push(insert(state, day, fit, memory, randomness, true)); // one for which no token is left has none
      rows = rows.slice(fit.length);
    }
    return pieces;
  };
  const pieces = split(refused);
  const kept: Upload[] = [];
  for (const piece of memory.pieces) {
    // it would be refused as well
    if (piece.body.length > body && piece.rows.length > 1 && retract(state, piece)) pieces.push(...split(piece));
    else if (isUntouched(state, piece)) kept.push(piece);
  }
  return { ...memory, body, pieces: [...pieces, ...kept] };
}

/**
 * Lets the reports of `upload`, which never left, wait as before it was sealed.
 *
 * Returns false if a denial or another process came first, or a server that refused an earlier upload
 * knows these reports: together with later ones they would link the two.
 */
export function unseal(state: State, upload: Upload, { purse }: Memory): boolean {
  if (!upload.rows.length || upload.known || !retract(state, upload)) return false;
  if (upload.token !== undefined) purse?.putBack(state, upload.id, upload.token, upload.sealedDay);
  state.reports.unshift(...upload.rows); // they are older than all others again
  return true;
}

/** Notes one more try of `upload`, behind all others, so that it blocks none. */
export function putBehind(state: State, upload: Upload): Upload {
  const at = state.uploads.findIndex(({ id }) => id === upload.id);
  const [kept] = state.uploads.splice(at, 1);
  if (!kept) return upload;
  state.uploads.push({ ...kept, tries: kept.tries + 1 });
  return { ...upload, tries: kept.tries + 1 };
}

/** Deletes a sealed upload; returns false if another process, or a denial, came first. */
export function remove(state: State, id: string): boolean {
  const before = state.uploads.length;
  state.uploads = state.uploads.filter((upload) => upload.id !== id);
  return state.uploads.length < before;
}

/** Returns how many uploads would be needed for all that waits, if none grew too large. */
export const lots = (state: State, memory: Memory): number =>
  state.uploads.length + (memory.reports > ALONE ? new Set(state.reports.map(textOf)).size : state.reports.length);

const textOf = (report: WaitingReport): string => JSON.stringify(report.segment);

/** Returns a segment that has waited since the earliest day; of several any, as an order would tell. */
function segmentOf(state: State, randomness: Randomness): string | null {
  const earliest = Math.min(...state.reports.map((report) => report.day));
  // by the earliest day of each segment: the earliest of all is also a segment's own earliest
  const oldest = [...new Set(state.reports.filter(({ day }) => day === earliest).map(textOf))].sort();
  if (oldest.length < 2) return oldest[0] ?? null;
  return oldest[Number(randomness.uniform(BigInt(oldest.length)))] ?? null;
}

/** Returns how many reports let another of the earliest day go first, alone: a fixed order would link them. */
function passedOver(reports: readonly WaitingReport[], randomness: Randomness): number {
  const earliest = Math.min(...reports.map(({ day }) => day));
  return Number(randomness.uniform(BigInt(reports.filter(({ day }) => day === earliest).length)));
}

function insert(
  state: State, sealedDay: number, rows: readonly WaitingReport[], { purse }: Memory, randomness: Randomness, known: boolean,
): Upload {
  const { id, token } = purse?.spend(state, sealedDay) ?? { id: toBase64url(fromNumber(randomness.uniform(1n << BigInt(8 * ID_SIZE)), ID_SIZE)) };
  const body = sealPadded(id, sealedDay, rows[0]?.segment ?? {}, rows);
  const upload: SealedUpload = { id, body, reports: rows.length, sealedDay, tries: 0, ...(token !== undefined && { token }) };
  state.uploads.push(upload);
  return { ...upload, rows, known };
}

/** Returns the upload of the row, as a piece that was never tried if it is one. */
function uploadOf(state: State, row: SealedUpload | undefined, memory: Memory): Upload | null {
  if (!row) return null;
  const piece = memory.pieces.find(({ id }) => id === row.id);
  return piece && isUntouched(state, piece) ? piece : { ...row, rows: [], known: false };
}

const isUntouched = (state: State, upload: Upload): boolean =>
  state.uploads.some(({ id, tries }) => id === upload.id && tries === upload.tries);

/** Deletes a sealed upload unless another process has tried it since; returns whether it did. */
const retract = (state: State, upload: Upload): boolean => isUntouched(state, upload) && remove(state, upload.id);

/** Returns the leading rows that surely fit a body; at least one. */
function fitting(rows: readonly WaitingReport[], body: number): WaitingReport[] {
  let room = body - UPLOAD_FRAME - (rows[0] ? textOf(rows[0]).length : 0);
  const columns = new Set<string>();
  const fit: WaitingReport[] = [];
  for (const row of rows) {
    const column = `${row.digest} ${row.epoch}`;
    if (!columns.has(column)) room -= COLUMN_FRAME;
    columns.add(column);
    room -= row.payload.length;
    if (fit.length && (room < 0 || columns.size > MAX_COLUMNS)) break;
    fit.push(row);
  }
  return fit;
}
