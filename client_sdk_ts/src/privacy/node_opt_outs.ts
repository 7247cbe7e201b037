/** Who may say no in Node, Electron and VS Code: the environment, the machine's policy, the user's file. */

import { lstatSync, readFileSync } from "node:fs";
import { join } from "node:path";

import { signOfAutomation } from "./automation.js";
import { environmentSaysNo, type Environment, type OptOuts } from "./opt_outs.js";

/** In the application's data folder; its presence is the answer. */
export const USER_FILE = "telemetry-off";

/** Where to look; what is left out is of this process and machine. */
export interface NodeOptOuts {
  /** The application's data folder; null: it has none. */
  readonly folder: string | null;
  /** What the application keeps there, for `signOfAutomation`. */
  readonly ledger: string | null;
  readonly environment?: Environment;
  /** The path of the policy. */
  readonly policy?: string;
  /** Whether it matters that a machine may run the application by itself. */
  readonly heedsAutomation?: boolean;
}

/** Returns the opt-outs of this machine. */
export function nodeOptOuts(places: NodeOptOuts): OptOuts {
  const environment = places.environment ?? process.env;
  const policy = places.policy ?? policyPath(environment);
  const root = places.environment ? null : "/";
  return {
    saidBy: () => {
      const variable = environmentSaysNo(environment);
      if (variable) return variable;
      if (forbids(policy)) return "policy";
      return places.folder !== null && exists(join(places.folder, USER_FILE)) ? "user" : null;
    },
    automation: () =>
      places.heedsAutomation === false ? null : signOfAutomation(places.ledger, environment, root),
  };
}

/** Returns the file in which the owner of a machine may forbid telemetry. */
export function policyPath(environment: Environment, platform: string = process.platform): string {
  if (platform === "win32") return `${environment["PROGRAMDATA"] ?? "C:\\ProgramData"}\\hearsay\\policy.toml`;
  if (platform === "darwin") return "/Library/Application Support/hearsay/policy.toml";
  return "/etc/hearsay/policy.toml";
}

/**
 * Whether the file `policy` says `telemetry = false`.
 *
 * One that is there but cannot be read, or is not understood, forbids too: somebody wanted to say
 * something, and the only thing that can be said is no.
 */
export function forbids(policy: string): boolean {
  try {
    return !permits(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(readFileSync(policy)));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    // a process that may open no more files can still see that there is no opt-out
    if (code === "EMFILE" || code === "ENFILE") return exists(policy);
    return code !== "ENOENT" && code !== "ENOTDIR";
  }
}

const TEXT = String.raw`"[^"\\\x00-\x1f\x7f]*"|'[^'\x00-\x1f\x7f]*'`;
const KEY = `(?:[A-Za-z0-9_-]+|${TEXT})`;
const VALUE = String.raw`(?:${TEXT}|true|false|[+-]?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?)`;
const LINE = new RegExp(
  String.raw`^[ \t]*(?:\[[ \t]*(${KEY})[ \t]*\]|(${KEY})[ \t]*=[ \t]*(${VALUE}))?[ \t]*(?:#[^\x00-\x08\x0b-\x1f\x7f]*)?$`,
);

/**
 * Whether the text of a policy is understood and does not forbid.
 *
 * Read are comments, tables and keys with plain values.  Other TOML is not understood, nor is a key or
 * table that is there twice.
 */
function permits(text: string): boolean {
  let table = "";
  const seen = new Set<string>();
  for (const line of text.split(/\r?\n/)) {
    const match = LINE.exec(line);
    if (!match) return false;
    const name = (match[1] ?? match[2])?.replace(/^["']|["']$/g, "");
    if (name === undefined) continue;
    if (match[1]) table = "";
    if (!table && name === "telemetry" && match[3] !== "true") return false;
    const place = JSON.stringify([table, name]);
    if (seen.has(place)) return false;
    seen.add(place);
    if (match[1]) table = name;
  }
  return true;
}

/** Whether anything is at `path`, a link that leads nowhere too. */
function exists(path: string): boolean {
  try {
    lstatSync(path);
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return code !== "ENOENT" && code !== "ENOTDIR";
  }
}
