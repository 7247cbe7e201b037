/**
 * Whether a machine runs the application by itself, in Node.
 *
 * A build that starts a program ten thousand times a day would count as ten thousand people.  What
 * gives it away is a variable that its service documents; or, on Linux, a container in which nothing
 * survives: it has no machine id, the data folder lies on its own layer, and no ledger is there yet.
 * HEARSAY_TELEMETRY=1 says that a person is there all the same.
 *
 * Nothing is recorded there and nothing is sent, but nothing is erased either: no one has opted out.
 */

import { existsSync, readFileSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";

import { type Environment, isVouchedFor, wordOf } from "./opt_outs.js";

/** Each is set by its service to a text that is neither empty, 0 nor false. */
export const VARIABLES: readonly string[] = [
  "CI",
  "GITHUB_ACTIONS",
  "TF_BUILD",
  "BUILDKITE",
  "GITLAB_CI",
  "JENKINS_URL",
  "TEAMCITY_VERSION",
  "CIRCLECI",
  "TRAVIS",
  "APPVEYOR",
  "BITBUCKET_BUILD_NUMBER",
  "CODEBUILD_BUILD_ID",
  "DRONE",
  "bamboo_buildKey",
  "CIRRUS_CI",
  "SEMAPHORE",
  "NETLIFY",
  "GO_PIPELINE_NAME",
  "BITRISE_IO",
  "PROW_JOB_ID",
];
export const CONTAINER = "a container that keeps nothing";

const UNSET = ["", "0", "false"];
const LAYERS = ["overlay", "fuse-overlayfs", "fuse.fuse-overlayfs", "aufs"];
const MACHINE_IDS = ["etc/machine-id", "var/lib/dbus/machine-id"];
/** An image has one of these, to be filled at its first boot. */
const NO_ID = ["", "uninitialized"];

/**
 * Returns what shows that no person is present: a variable's name or CONTAINER; null: one may be.
 *
 * `ledger` is the path of what the application keeps, null if it keeps nothing; `root` has the files of
 * the machine, null if they tell nothing.
 */
export function signOfAutomation(
  ledger: string | null, environment: Environment, root: string | null = "/",
): string | null {
  if (isVouchedFor(environment)) return null;
  const variable = VARIABLES.find((name) => !UNSET.includes(wordOf(environment, name)));
  if (variable) return variable;
  const looks = ledger !== null && root !== null && process.platform === "linux";
  return looks && isDisposable(ledger, root) ? CONTAINER : null;
}

/** Whether `ledger` is of a container without a machine id, and no run before this one left any. */
function isDisposable(ledger: string, root: string): boolean {
  try {
    if (MACHINE_IDS.some((path) => !NO_ID.includes(read(root, path).trim())) || existsSync(ledger)) return false;
    const mounts = read(root, "proc/self/mounts").split("\n").map((line) => line.split(" "));
    const kind = mounts.filter((row) => row[1] === "/").at(-1)?.[2]; // the last mount covers those before it
    if (!LAYERS.includes(kind ?? "")) return false;
    let folder = dirname(resolve(ledger));
    while (!existsSync(folder)) folder = dirname(folder);
    return statSync(folder).dev === statSync(root).dev;
  } catch {
    return false; // what cannot be read tells nothing: then a person may be there
  }
}

/** Returns the system's file at `path`; empty if there is none. */
function read(root: string, path: string): string {
  try {
    return readFileSync(join(root, path), "latin1");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return "";
    throw error;
  }
}
