/**
 * The store of Node, Electron and VS Code: a folder, for one user only.
 *
 * The document is a file that is replaced as a whole: a new one is written, brought to the disk and
 * renamed, so a crash leaves the old one or the new one.  Processes and threads take turns: see claims.ts.
 *
 * The secret is a file of its own, so that the document alone says nothing about any value.  It appears
 * before what it masks, and is overwritten and removed before the document forgets it: should that fail,
 * what is left of it matches nothing more.  If there is no document, but a file that is only made after
 * one, a ledger was lost, and the new one begins in doubt.
 *
 * A document has the identity of its folder and machine.  One that was copied to another place keeps what
 * it has spent, is in doubt, and loses what a copy must not repeat: reports, windows, the memo and the
 * secret.  So does one that was put back to an earlier state: its generation is behind the file
 * `generation`, or its folder was made anew.  The file never runs ahead, as it is written after the
 * document is durable.  A copy of all files that is put back over them is not detected.
 */

import {
  chownSync, closeSync, constants, existsSync, fstatSync, fsyncSync, lstatSync, mkdirSync, openSync, readFileSync, renameSync,
  statSync, writeSync,
} from "node:fs";
import { open } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";

import { fromBase64url, toBase64url, toHex, utf8 } from "../core/bytes.js";
import { InvalidParameterError, StoreError } from "../core/errors.js";
import { sha256 } from "../core/hashing.js";
import { type Claim, codeOf, remove, removeOlder, takeClaim } from "./claims.js";
import { doubted, readDocument, writeDocument } from "./document.js";
import { dropReserve, meansFull, RESERVE_FILE, reserveBytes } from "./reserve.js";
import type { State } from "./state.js";
import type { Store } from "./store.js";

/** In the folder: a line with its generation and identity, and the document. */
export const DOCUMENT_FILE = "hearsay.document";
/** Beside it: its generation, in digits of one length, so that no crash leaves a smaller number. */
export const GENERATION_FILE = "generation";
const DIGITS = 15;
const SECRET_FILE = "secret";
const SECRET_SIZE = 32; // bytes

/** Milliseconds that one process waits for others; a change takes some ten. */
const BUSY_TIMEOUT = 5_000;
const NAP = 10;
const MACHINE_FILES = ["/etc/machine-id", "/var/lib/dbus/machine-id"];
/** What systems say that cannot bring a folder to the disk, and need not. */
const NO_FOLDER_SYNC: readonly unknown[] = ["EISDIR", "EINVAL", "EPERM", "EACCES", "ENOTSUP", "EBADF"];

/** What lies in the folder. */
interface Files {
  /** The latest that is known of. */
  readonly generation: number;
  /** Whether the document is that generation and was written here; if there is none, whether none is missing. */
  readonly isOwn: boolean;
  readonly text: string | null;
  readonly secret: string | null;
}

/** Returns the store in `folder`, which is made when first needed.  Throws InvalidParameterError: no path. */
export function fileStore(folder: string): FileStore {
  if (typeof folder !== "string" || !folder || folder.includes("\0")) {
    throw new InvalidParameterError("folder", typeof folder, "must be the path of a folder");
  }
  return new FileStore(resolve(folder));
}

/** A store that says where it lies. */
export class FileStore implements Store {
  readonly durable = true;
  #closed = false;
  #turn: Promise<unknown> = Promise.resolve(); // the latest change of this store

  constructor(readonly folder: string) {}

  async update<T>(change: (state: State) => T): Promise<T> {
    this.#requireOpen();
    const turn = this.#turn.then(() =>
      this.#update(change).catch((error: unknown) => {
        if (!(error instanceof StoreError) || !meansFull(error.cause)) throw error;
        dropReserve(this.folder);
        return this.#update(change);
      }),
    );
    this.#turn = turn.catch(() => undefined);
    return turn;
  }

  async read<T>(look: (state: State) => T): Promise<T> {
    this.#requireOpen();
    return look(stateOf(this.#wrapped(() => this.#files())));
  }

  open(): void {
    this.#closed = false;
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#turn;
  }

  #requireOpen(): void {
    if (this.#closed) throw new StoreError(`${DOCUMENT_FILE}: was closed`);
  }

  async #update<T>(change: (state: State) => T): Promise<T> {
    const [files, claim] = await this.#claim();
    try {
      const state = stateOf(files);
      const result = change(state);
      const { secret } = state;
      const text = writeDocument({ ...state, secret: null });
      if (text !== files.text || secret !== files.secret) {
        await this.#wrapped(() => this.#write(files, claim, text, secret));
      }
      return result;
    } finally {
      claim.release();
    }
  }

  /** Returns the claim of this process, and what was in the folder since. */
  async #claim(): Promise<[Files, Claim]> {
    const end = performance.now() + BUSY_TIMEOUT;
    for (;;) {
      const taken = this.#wrapped(() => {
        makeFolder(this.folder);
        const { generation } = this.#files();
        const claim = takeClaim(this.folder, generation);
        if (!claim) return null;
        const files = this.#files();
        if (files.generation === generation) return [files, claim] as [Files, Claim];
        claim.release();
        return null;
      });
      if (taken) return taken;
      if (performance.now() > end) throw new StoreError(`${DOCUMENT_FILE}: other processes are at work`);
      await new Promise((wake) => setTimeout(wake, 1 + (performance.now() * 1000) % NAP));
    }
  }

  async #write(files: Files, claim: Claim, text: string, secret: string | null): Promise<void> {
    const place = (name: string): string => join(this.folder, name);
    const part = (name: string): string => place(`${name}-${claim.name}`);
    const parts = ["new", "reserve", "secret"].map(part);
    parts.forEach(remove); // of a claim of that name that came to nothing
    const generation = files.generation + 1;
    const grows = text.length > (files.text?.length ?? 0);
    const reserves = grows && !existsSync(place(RESERVE_FILE)); // room is for what shrinks
    try {
      if (reserves) await writeNew(part("reserve"), reserveBytes());
      await writeNew(part("new"), `${generation} ${identitiesOf(this.folder)[0]}\n${text}`);
      if (secret !== null && secret !== files.secret) await writeNew(part("secret"), fromBase64url(secret) ?? "");
      if (!claim.isHeld()) throw new StoreError(`${DOCUMENT_FILE}: this process was stopped for too long`);
      if (secret !== files.secret) shred(place(SECRET_FILE));
      if (secret !== null && secret !== files.secret) renameSync(part("secret"), place(SECRET_FILE));
      renameSync(part("new"), place(DOCUMENT_FILE));
    } catch (error) {
      parts.forEach(remove);
      throw error;
    }
    try {
      if (reserves) renameSync(part("reserve"), place(RESERVE_FILE)); // not sooner: it shows that there was a document
      removeOlder(this.folder, generation);
      await syncFolder(this.folder);
    } catch (error) {
      // without a cause for which it would be done again: the change is there, and would be there twice
      throw new StoreError(`${DOCUMENT_FILE}: ${codeOf(error)}: was replaced, but may not be on the disk`);
    }
    writeGeneration(place(GENERATION_FILE), generation);
  }

  #files(): Files {
    const place = (name: string): string => join(this.folder, name);
    // before the document: it was there first, and others may replace it meanwhile
    const latest = readGeneration(place(GENERATION_FILE));
    const remains = [GENERATION_FILE, RESERVE_FILE].some((name) => existsSync(place(name)));
    const content = contentOf(place(DOCUMENT_FILE))?.toString("utf-8") ?? null;
    const secret = contentOf(place(SECRET_FILE));
    const known = secret?.length === SECRET_SIZE && secret.some((byte) => byte);
    const [head = "", own = 0, identity = ""] = /^([0-9]{1,15}) ([0-9a-f]+)\n/.exec(content ?? "") ?? [];
    return {
      generation: Math.max(Number(own), latest),
      isOwn: content === null ? !remains && secret === null : Number(own) >= latest && identitiesOf(this.folder).includes(identity),
      text: content && content.slice(head.length),
      secret: known ? toBase64url(secret) : null,
    };
  }

  /** Returns what `work` does; what a system throws becomes a StoreError. */
  #wrapped<T>(work: () => T): T {
    const fail = (error: unknown): never => {
      if (error instanceof StoreError) throw error;
      throw new StoreError(`${DOCUMENT_FILE}: ${codeOf(error) ?? "cannot be used"}`, { cause: error });
    };
    try {
      const result = work();
      return result instanceof Promise ? (result.catch(fail) as T) : result;
    } catch (error) {
      return fail(error);
    }
  }
}

function stateOf({ isOwn, text, secret }: Files): State {
  const known = readDocument(text);
  const state = isOwn ? known : doubted(known);
  // a secret beside a document that is in doubt is of one that is gone
  if (!state.doubt) state.secret = secret;
  return state;
}

/**
 * Returns what tells a folder from its copies, and this machine from others: with the time at which it
 * was made, and without.  It is never sent.
 *
 * The number of a folder is given again soon after that is deleted, so one that was put back may have it.
 */
function identitiesOf(folder: string): string[] {
  const { birthtimeNs, ctimeNs, ino, mtimeNs } = statSync(folder, { bigint: true });
  // a system that does not know it says when the folder last changed
  const births = [ctimeNs, mtimeNs].includes(birthtimeNs) ? [""] : [birthtimeNs, ""];
  return births.map((birth) => toHex(sha256(utf8(`hearsay identity\0${machineId()}\0${ino}\0${birth}`))).slice(0, 32));
}

/** Returns the number in the file at `path`; 0 if there is none that can be read. */
function readGeneration(path: string): number {
  try {
    return Number(/^[0-9]{15}$/.exec(readFileSync(path, "latin1")) ?? 0);
  } catch {
    return 0;
  }
}

/** Writes `generation` in place, which takes no room on a full disk, if it can. */
function writeGeneration(path: string, generation: number): void {
  try {
    const file = openSync(path, constants.O_WRONLY | constants.O_CREAT | (constants.O_NOFOLLOW ?? 0), 0o600);
    try {
      writeSync(file, String(generation).padStart(DIGITS, "0"), 0);
    } finally {
      closeSync(file);
    }
    give(path);
  } catch {
    // the change stands, and only this sign of a rollback is lost
  }
}

/** Writes `content` to a new file at `path`, for one user only, and brings it to the disk. */
async function writeNew(path: string, content: string | Uint8Array): Promise<void> {
  const file = await open(path, "wx", 0o600);
  try {
    await file.writeFile(content);
    await file.sync();
  } finally {
    await file.close();
  }
  give(path);
}

let machine: string | undefined;

/** Returns what Linux calls this installation of it; empty elsewhere. */
function machineId(): string {
  const path = MACHINE_FILES.find((file) => existsSync(file));
  try {
    return (machine ??= path ? readFileSync(path, "latin1").trim() : "");
  } catch {
    return (machine = "");
  }
}

function contentOf(path: string): Buffer | null {
  try {
    return readFileSync(path);
  } catch (error) {
    if (codeOf(error) === "ENOENT") return null;
    throw error;
  }
}

/**
 * Makes the folder and its missing parents.
 *
 * Not by a recursive mkdir: Node's never ends where a file system allows no new folder, as /proc.
 */
function makeFolder(folder: string): void {
  if (existsSync(folder)) return;
  const parent = dirname(folder);
  if (parent !== folder) makeFolder(parent);
  try {
    mkdirSync(folder, { mode: 0o700 });
  } catch (error) {
    if (codeOf(error) === "EEXIST") return; // another process was first
    throw error;
  }
  give(folder);
}

/** Gives what root made, as by sudo, to the owner of the folder that it lies in. */
function give(path: string): void {
  if (process.geteuid?.() !== 0) return;
  try {
    const { uid, gid } = statSync(dirname(path));
    chownSync(path, uid, gid);
  } catch {
    // some file systems have no owners, or refuse to change them
  }
}

/** Overwrites the file at `path` with zeros and removes it; one that is gone is gone. */
function shred(path: string): void {
  try {
    if (lstatSync(path).isFile()) {
      const file = openSync(path, "r+");
      try {
        writeSync(file, new Uint8Array(fstatSync(file).size), 0, null, 0);
        fsyncSync(file);
      } finally {
        closeSync(file);
      }
    }
    remove(path);
  } catch (error) {
    if (codeOf(error) !== "ENOENT") throw error;
  }
}

async function syncFolder(folder: string): Promise<void> {
  try {
    const file = await open(folder, "r");
    try {
      await file.sync();
    } finally {
      await file.close();
    }
  } catch (error) {
    if (!NO_FOLDER_SYNC.includes(codeOf(error))) throw error;
  }
}
