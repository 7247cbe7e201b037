/**
 * Turns of the processes that share a folder, without a lock that a crash could leave behind.
 *
 * A document has a generation.  Only the process that creates the claim of a generation may replace the
 * document of that generation; a claim of an older generation is void, as its holder sees when it reads
 * the document again.  So a claim that a killed process leaves behind stops no process for long: the
 * next one makes another attempt, next to it.  A claim is a symbolic link, which appears with its text
 * at once; without symbolic links, a file.
 *
 * A claim is abandoned if its process is gone.  That is known of processes of the same boot and pid
 * namespace.  Of others, as of containers that share a volume, and where a thread was ended within a
 * living process, it counts as abandoned after PATIENCE.  A holder that was stopped for longer than
 * LONGEST gives up by itself; only if it is stopped between that look and the next system call, and goes
 * on after PATIENCE, could what others wrote meanwhile be lost.
 */

import { randomUUID } from "node:crypto";
import { lstatSync, readdirSync, readFileSync, readlinkSync, symlinkSync, unlinkSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";

/** Milliseconds; a change takes some ten. */
const PATIENCE = 60_000;
const LONGEST = 20_000;

/** The right of this process to replace the document of a generation. */
export interface Claim {
  /** A name that no other claim has while it is held. */
  readonly name: string;
  /** Whether it still holds for sure. */
  isHeld(): boolean;
  /** Lets others come.  Never throws: what cannot be removed becomes void, or abandoned. */
  release(): void;
}

/** Returns the claim of `generation` in `folder`, or null if another process has it.  Throws errors of the system. */
export function takeClaim(folder: string, generation: number): Claim | null {
  const passed: (string | null)[] = []; // texts of the abandoned attempts
  const begun = performance.now();
  for (;;) {
    const name = `${generation}-${passed.length}`;
    const path = pathOf(folder, name);
    if (create(path)) {
      const claim = {
        name,
        isHeld: () => performance.now() - begun < LONGEST,
        release: () => tryToRemove(path),
      };
      if (isAlone(folder, generation, passed)) return claim;
      claim.release();
      return null;
    }
    const text = read(path);
    if (text === null || !isAbandoned(folder, path, text)) return null;
    passed.push(text);
  }
}

/** Removes, if it can, claims of generations before `generation`, and what their holders did not finish. */
export function removeOlder(folder: string, generation: number): void {
  for (const file of readdirSync(folder)) {
    const match = /^(?:claim|new|reserve|secret)-([0-9]+)-[0-9]+$/.exec(file);
    if (match && Number(match[1]) < generation) tryToRemove(join(folder, file));
  }
}

/**
 * Whether all other attempts are those that were found abandoned.
 *
 * Who makes a lower attempt, after its holder went on and released it, sees the higher one; or else who
 * made the higher one sees that the lower has another text.  Then one of the two, or both, give way.
 */
function isAlone(folder: string, generation: number, passed: readonly (string | null)[]): boolean {
  const attempts = readdirSync(folder).filter((file) => file.startsWith(`claim-${generation}-`));
  return (
    attempts.length === passed.length + 1 &&
    passed.every((text, attempt) => read(pathOf(folder, `${generation}-${attempt}`)) === text)
  );
}

function create(path: string): boolean {
  const text = [process.pid, startOf(process.pid) ?? "?", randomUUID(), place()].join(" ");
  try {
    try {
      symlinkSync(text, path);
    } catch (error) {
      if (codeOf(error) === "EEXIST") throw error;
      writeFileSync(path, text, { flag: "wx", mode: 0o600 }); // Windows lets few make links
    }
    return true;
  } catch (error) {
    if (codeOf(error) === "EEXIST") return false;
    throw error;
  }
}

/** Returns the text of a claim; null if it is gone. */
function read(path: string): string | null {
  try {
    return readlinkSync(path);
  } catch (error) {
    if (codeOf(error) === "ENOENT") return null;
  }
  try {
    return readFileSync(path, "utf-8");
  } catch {
    return null;
  }
}

function isAbandoned(folder: string, path: string, text: string): boolean {
  const [pid, start, , ...rest] = text.split(" ");
  if (rest.join(" ") === place() && isGone(Number(pid), start ?? "?")) return true;
  return ageOf(folder, path) > PATIENCE;
}

/** Whether no process has that number, or another one that began later. */
function isGone(pid: number, start: string): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    return codeOf(error) === "ESRCH";
  }
  return start !== "?" && (startOf(pid) ?? start) !== start;
}

/** Returns how long ago a claim was made, in milliseconds of the clock of its file system. */
function ageOf(folder: string, path: string): number {
  const watch = join(folder, `watch-${randomUUID()}`);
  try {
    const made = lstatSync(path).mtimeMs;
    writeFileSync(watch, "", { flag: "wx", mode: 0o600 });
    return lstatSync(watch).mtimeMs - made;
  } catch {
    return 0;
  } finally {
    tryToRemove(watch);
  }
}

/** Returns when a process began, in ticks since the boot; null where the system does not tell. */
function startOf(pid: number): string | null {
  try {
    const status = readFileSync(`/proc/${pid}/stat`, "latin1");
    const fields = status.slice(status.lastIndexOf(")") + 2).split(" ");
    // a zombie runs no more, though its parent has not seen that yet
    return fields[0] === "Z" ? "never" : (fields[19] ?? null);
  } catch {
    return null;
  }
}

let here: string | undefined;

/** Returns what processes have in common that can see each other. */
function place(): string {
  if (here !== undefined) return here;
  try {
    const boot = readFileSync("/proc/sys/kernel/random/boot_id", "latin1").trim();
    return (here = `${boot} ${readlinkSync("/proc/self/ns/pid")}`);
  } catch {
    return (here = hostname());
  }
}

/** Removes the file at `path`; one that is gone is gone. */
export function remove(path: string): void {
  try {
    unlinkSync(path);
  } catch (error) {
    if (codeOf(error) !== "ENOENT") throw error;
  }
}

function tryToRemove(path: string): void {
  try {
    remove(path);
  } catch {
    // it does no harm
  }
}

const pathOf = (folder: string, name: string): string => join(folder, `claim-${name}`);

export const codeOf = (error: unknown): string | undefined => (error as NodeJS.ErrnoException | undefined)?.code;
