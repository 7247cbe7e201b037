/**
 * The store of Node, Electron and VS Code: a folder, for one user only.
 *
 * The document is a file that is replaced as a whole: a new one is written, brought to the disk and
 * renamed, so a crash leaves the old one or the new one.  Processes and threads take turns: see claims.ts.
 *
 * The secret is a file of its own, so that the document alone says nothing about any value.  It appears
 * before what it masks, and is overwritten and removed before the document forgets it: should that fail,
 * what is left of it matches nothing more.  If there is a secret but no document, a ledger was lost, and
 * the new one begins in doubt.
 *
 * A document has the identity of its folder and machine.  One that was copied to another place keeps what
 * it has spent, is in doubt, and loses what a copy must not repeat: reports, windows, the memo and the
 * secret.  What is put back into the same folder is not told from what it was.
 */

import {
  chownSync, closeSync, existsSync, fstatSync, fsyncSync, lstatSync, mkdirSync, openSync, readFileSync, renameSync, statSync,
  writeSync,
} from "node:fs";
import { open } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";

import { fromBase64url, toBase64url, toHex, utf8 } from "../core/bytes.js";
import { InvalidParameterError, StoreError } from "../core/errors.js";
import { sha256 } from "../core/hashing.js";
import { type Claim, codeOf, remove, removeOlder, takeClaim } from "./claims.js";
import { doubted, readDocument, writeDocument } from "./document.js";
import { dropReserve, keepReserve, meansFull } from "./reserve.js";
import { newState, type State } from "./state.js";
import type { Store } from "./store.js";

/** In the folder: a line with its generation and identity, and the document. */
export const DOCUMENT_FILE = "hearsay.document";
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
  readonly generation: number;
  /** Whether it was written here, as far as it says. */
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
    const path = place(`new-${claim.name}`);
    remove(path); // of a claim of that name that came to nothing
    try {
      if (text.length > (files.text?.length ?? 0)) keepReserve(this.folder); // room is for what shrinks
      const file = await open(path, "wx", 0o600);
      try {
        await file.writeFile(`${files.generation + 1} ${identityOf(this.folder)}\n${text}`);
        await file.sync();
      } finally {
        await file.close();
      }
      give(path);
      if (!claim.isHeld()) throw new StoreError(`${DOCUMENT_FILE}: this process was stopped for too long`);
      if (secret !== files.secret) this.#writeSecret(secret, place(`secret-${claim.name}`));
      renameSync(path, place(DOCUMENT_FILE));
    } catch (error) {
      remove(path);
      throw error;
    }
    try {
      removeOlder(this.folder, files.generation + 1);
      await syncFolder(this.folder);
    } catch (error) {
      // without a cause for which it would be done again: the change is there, and would be there twice
      throw new StoreError(`${DOCUMENT_FILE}: ${codeOf(error)}: was replaced, but may not be on the disk`);
    }
  }

  /** Overwrites the secret that there is, and puts a new one in its place, which is written to `path` first. */
  #writeSecret(secret: string | null, path: string): void {
    const target = join(this.folder, SECRET_FILE);
    shred(target);
    if (secret === null) return;
    remove(path);
    const file = openSync(path, "wx", 0o600);
    try {
      writeSync(file, fromBase64url(secret) ?? new Uint8Array());
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    give(path);
    renameSync(path, target);
  }

  #files(): Files {
    const bytes = contentOf(join(this.folder, DOCUMENT_FILE));
    const secret = contentOf(join(this.folder, SECRET_FILE));
    const known = secret?.length === SECRET_SIZE && secret.some((byte) => byte);
    const content = bytes && bytes.toString("utf-8");
    const head = /^([0-9]{1,15})(?: ([0-9a-f]+))?\n/.exec(content ?? "");
    return {
      generation: Number(head?.[1] ?? 0),
      isOwn: head?.[2] === undefined || head[2] === identityOf(this.folder),
      text: content && content.slice(head?.[0].length ?? 0),
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
  const known = text === null && secret !== null ? newState(true) : readDocument(text);
  const state = isOwn ? known : doubted(known);
  // a secret beside a document that is in doubt is of one that is gone
  if (!state.doubt) state.secret = secret;
  return state;
}

/** Returns what tells a folder from its copies, and this machine from others.  It is never sent. */
function identityOf(folder: string): string {
  const { ino } = statSync(folder, { bigint: true });
  return toHex(sha256(utf8(`hearsay identity\0${machineId()}\0${ino}`))).slice(0, 32);
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
 * Makes the folder and those above it, where there are none.
 *
 * Not by a recursive mkdir: Node's never ends where a file system lets nobody make a folder, as /proc.
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
    // some file systems know no owners, or let nobody change them
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
