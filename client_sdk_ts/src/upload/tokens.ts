/**
 * One-time tokens: asked for in one week, spent in the next, one an upload.
 *
 * An issuer learns who asks, and when; a collector learns when a token is spent.  So the two moments
 * are independent: tokens of the next week are fetched at a random time of this one, and a pass that
 * fetches sends no upload.  Only a device without tokens for this week, such as a new one, fetches
 * them at its first pass, and its first upload follows some hours later.
 *
 * A sealed upload and its token stay together, as the upload's id is the hash of the token.
 *
 * The keys of the issuer are in the plan whose digest the application was built with, each with a
 * proof that its owner cannot distinguish requests.  Nothing else that an issuer says is believed.
 *
 * Source: RFC 9577, sections 2.1 and 2.2; RFC 9578, sections 4 and 6.
 */

import { type Bytes, concat, fromBase64url, fromNumber, toBase64url, toHex, toNumber, utf8 } from "../core/bytes.js";
import { DAY, dayOf, epochOf, epochStart } from "../core/epoch.js";
import { EntropyError, HearsayError, InvalidParameterError, StoreError, TransportError } from "../core/errors.js";
import { sha256 } from "../core/hashing.js";
import type { Randomness } from "../core/randomness.js";
import type { Stats } from "../core/stats.js";
import type { HeldToken, State, Tokens } from "../storage/state.js";
import { blind, finalize, isPermutation, MODULUS_SIZE } from "./blind_rsa.js";
import * as schedule from "./schedule.js";
import { type Exchange, MAX_EXCHANGE, requireUrl, type Response } from "./transport.js";

/** From one key of an issuer to the next. */
const EVERY = "7d";
const KIND = /* @__PURE__ */ Uint8Array.of(0, 2); // blind RSA with 2,048 bits
const NONCE_SIZE = 32; // bytes
const ID_SIZE = 16; // bytes of an upload's id
/** Bytes of a key as DER before its modulus, and behind. */
const [BEFORE, BEHIND] = [81, 5] as const;
const DIRECTORY_PATH = "/.well-known/private-token-issuer-directory";
const DIRECTORY_TYPE = "application/private-token-issuer-directory";
const REQUEST_PATH = "/token-request";
const REQUEST_TYPE = "application/private-token-request";
const RESPONSE_TYPE = "application/private-token-response";
const HEADER = "Hearsay-Token";
const ALL_GIVEN = '"urn:hearsay:problem:tokens-given"'; // the type of the issuer's own problem document
const PLAN_DIGITS = 43; // of a digest
const [OK, TOO_MANY, NO] = [200, 429, [401, 403]] as const;
const HOUR = 3_600;
/** Seconds until an issuer that gave nothing is asked again; and one that said no. */
const [MAX_RETRY, REFUSED_FOR] = [6 * HOUR, DAY] as const;

/** Who gives this application's devices their tokens, and by which keys. */
export interface Issuer {
  readonly url: string;
  /** The digest that `hearsay issuer-keys` printed; two of them, by a comma, while keys are replaced. */
  readonly plan: string;
  /** What identifies the device to the issuer; it is sent to the issuer only. */
  readonly attestation: string | (() => string | Promise<string>);
  /** Whether nothing is sent without a token; by default so. */
  readonly required?: boolean;
}

/** What a purse works with. */
export interface PurseParts {
  readonly issuer: Issuer;
  readonly app: string;
  readonly exchange: Exchange;
  readonly randomness: Randomness;
  readonly stats: Stats;
  /** Unix time in seconds. */
  readonly now: () => number;
  /** Whether the user agrees now. */
  readonly maySend: () => boolean;
}

type Update = <T>(change: (state: State) => T) => Promise<T>;

/** A proven key of an issuer, and what its tokens are bound to. */
interface Key {
  readonly id: Bytes;
  readonly modulus: bigint;
  readonly challenge: Bytes;
  /** Tokens that the issuer gives in a week. */
  readonly tokens: number;
}

/** An issuer said no, or what it said cannot be believed. */
class IssuerError extends HearsayError {
  override readonly reason = "refused";
}

/** The tokens of a device, which are in its document. */
export class Purse {
  readonly required: boolean;
  readonly #plans: readonly string[];

  /** Throws InvalidParameterError: an address or a plan is none. */
  constructor(private readonly parts: PurseParts) {
    const { url, plan, attestation, required = true } = parts.issuer;
    requireUrl("tokens.url", url);
    this.#plans = String(plan).split(",").map((digest) => digest.trim());
    if (this.#plans.some((digest) => digest.length !== PLAN_DIGITS)) {
      throw new InvalidParameterError("tokens.plan", plan, "must be what `hearsay issuer-keys` printed, or two of these by a comma");
    }
    if (typeof attestation !== "function") requireHeader(attestation);
    this.required = required;
  }

  /** Takes the token of an upload that is sealed on epoch `day`; null: none is left. */
  spend(state: State, day: number): HeldToken | null {
    const held = state.tokens?.held ?? [];
    const at = held.findIndex(({ week }) => week === weekOf(day));
    return at < 0 ? null : held.splice(at, 1)[0]!;
  }

  /** Lets the token of an upload that never left pay for another one. */
  putBack(state: State, id: string, token: string, day: number): void {
    state.tokens?.held.push({ id, token, week: weekOf(day) });
  }

  /** Whether an upload that is sealed on epoch `day` could have a token. */
  has(state: State, day: number): boolean {
    return !!state.tokens?.held.some(({ week }) => week === weekOf(day));
  }

  /** Returns what an upload is sent with beside its body. */
  headers(token: string): Record<string, string> {
    return { [HEADER]: token };
  }

  /** Returns the week whose tokens this pass fetches; null if it is one for uploads. */
  due(state: State, scheduled: boolean): number | null {
    const { maySend, now } = this.parts;
    return maySend() && (scheduled ? schedule.wait : schedule.backoff)(state.times, now()) <= 0 ? dueIn(state, now()) : null;
  }

  /** Fetches tokens if it is time to, in place of an upload; returns whether it was. */
  async fill(update: Update, timeout: number, scheduled: boolean): Promise<boolean> {
    const { maySend, now, randomness, stats } = this.parts;
    const week = await update((state) => {
      const due = this.due(state, scheduled);
      if (due === null) return null;
      if (scheduled && !state.times.claim) schedule.plan(state.times, now(), randomness);
      tokensOf(state).due = now() + HOUR; // no other tab or process asks meanwhile
      return due;
    });
    if (week === null) return false;
    let failure: unknown;
    let got = 0;
    try {
      for await (const token of this.#fetch(week, timeout)) {
        got++;
        if (!(await update((current) => maySend() && tokensOf(current).held.push({ ...token, week })))) return true;
      }
    } catch (error) {
      if (error instanceof StoreError || error instanceof EntropyError) throw error;
      failure = error; // such as of the application's attestation
    }
    if (failure instanceof TransportError) stats.fail(failure, 1, "network");
    else if (failure instanceof IssuerError || failure instanceof InvalidParameterError) {
      stats.add("refused");
      stats.warn("tokens", `no one-time tokens: ${failure.message}`);
    } else if (failure !== undefined) stats.fail(failure, 1, "internal");
    else if (got === 0) {
      stats.add("refused");
      stats.warn("tokens", "no one-time tokens of this week are left for this identity: another installation has them");
    }
    await update((current) => maySend() && this.#settle(tokensOf(current), week, failure));
    return true;
  }

  /** Plans when the issuer is asked next: for the week after, at any moment of the week before that one. */
  #settle(tokens: Tokens, week: number, failure: unknown): void {
    const now = this.parts.now();
    const current = weekOf(dayOf(now));
    if (failure !== undefined) {
      const refused = !(failure instanceof TransportError);
      tokens.due = now + (refused ? REFUSED_FOR : HOUR) + this.#chance(refused ? REFUSED_FOR : MAX_RETRY);
      return;
    }
    const later = Math.max(week, current);
    const begin = week === current ? now : epochStart(EVERY, later);
    tokens.last = week;
    tokens.due = begin + this.#chance(Math.max(epochStart(EVERY, later + 1) - Math.floor(begin), 1));
    tokens.held = tokens.held.filter((token) => token.week >= current);
  }

  /** Yields tokens of `week`, each with the id of its upload, as long as the issuer gives some. */
  async *#fetch(week: number, timeout: number): AsyncGenerator<{ id: string; token: string }> {
    const { issuer: { attestation }, randomness } = this.parts;
    const end = performance.now() + timeout;
    const left = (): number => {
      const rest = end - performance.now();
      if (rest <= 0) throw new TransportError("issuer: no time is left for more tokens");
      return rest;
    };
    const key = await this.#key(week, left());
    const said = typeof attestation === "function" ? await attestation() : attestation;
    requireHeader(said);
    const headers = { "Content-Type": REQUEST_TYPE, "Authorization": `Bearer ${said}` };
    for (let i = 0; i < key.tokens; i++) {
      const nonce = fromNumber(randomness.uniform(1n << BigInt(8 * NONCE_SIZE)), NONCE_SIZE);
      const message = concat(KIND, nonce, key.challenge, key.id);
      const { blinded, inverse } = await blind(message, key.modulus, randomness);
      const answer = await this.#ask(REQUEST_PATH, RESPONSE_TYPE, left(), headers, concat(KIND, key.id.slice(-1), blinded));
      if (!answer) return; // it has given all that it gives
      const signature = await finalize(message, key.modulus, inverse, answer.bytes());
      if (!signature) throw new IssuerError("token: is no signature by the key of its week");
      const token = concat(message, signature);
      yield { id: toBase64url(sha256(token).slice(0, ID_SIZE)), token: toBase64url(token) };
    }
  }

  /** Returns the key of `week`, as the application was built to believe. */
  async #key(week: number, timeout: number): Promise<Key> {
    const answer = await this.#ask(DIRECTORY_PATH, DIRECTORY_TYPE, timeout, {});
    try {
      const document = JSON.parse(answer!.text()) as {
        "hearsay-plan": { issuer: string; first: number; tokens: number; key_ids: string[] };
        "token-keys": { "token-key": string; "hearsay-proof": string[] }[];
      };
      const { issuer, first, tokens, key_ids } = document["hearsay-plan"];
      // who knows the digest knows all of the plan, so nothing else of it need be checked
      const digest = toBase64url(sha256(utf8(JSON.stringify({ issuer, first, tokens, key_ids }))));
      if (!this.#plans.includes(digest)) throw new IssuerError("plan: is another than the application was built with");
      for (const entry of document["token-keys"]) {
        const key = fromBase64url(entry["token-key"])!;
        const id = sha256(key);
        if (toHex(id) !== key_ids[week - first] || key.length !== BEFORE + MODULUS_SIZE + BEHIND) continue;
        const modulus = toNumber(key.slice(BEFORE, -BEHIND));
        const roots = entry["hearsay-proof"].map((root) => toNumber(fromBase64url(root)!));
        if (isPermutation(modulus, roots)) return { id, modulus, challenge: challengeOf(issuer, week, this.parts.app), tokens };
      }
    } catch (error) {
      throw error instanceof IssuerError ? error : new IssuerError("directory: is none");
    }
    throw new IssuerError(`plan.week=${week}: has no key that is proved to be good`);
  }

  /** Returns the issuer's answer of that kind; null: it gives no more. */
  async #ask(path: string, kind: string, timeout: number, headers: Readonly<Record<string, string>>, body?: Bytes): Promise<Response | null> {
    const { exchange, issuer: { url } } = this.parts;
    const request = { url: url.replace(/\/+$/, "") + path, headers: { Accept: kind, ...headers }, body };
    const answer = await exchange(request, Math.min(timeout, MAX_EXCHANGE));
    const { status } = answer;
    if (body && status === TOO_MANY && answer.text().includes(ALL_GIVEN)) return null; // any other is of a proxy's limit
    if ((NO as readonly number[]).includes(status)) throw new IssuerError(`issuer: said no with status ${status}; check the attestation`);
    if (status !== OK || answer.header("content-type")?.split(";")[0]?.trim().toLowerCase() !== kind) {
      throw new TransportError(`issuer: answered with status ${status}`);
    }
    return answer;
  }

  #chance(ceiling: number): number {
    return Number(this.parts.randomness.uniform(BigInt(1_000 * ceiling))) / 1_000;
  }
}

const weekOf = (day: number): number => epochOf(EVERY, day * DAY);

const tokensOf = (state: State): Tokens => (state.tokens ??= { last: 0, due: 0, held: [] });

/** Returns the week whose tokens are to be fetched now; null if none are. */
function dueIn({ tokens }: State, now: number): number | null {
  const { last = 0, due = 0 } = tokens ?? {};
  const week = weekOf(dayOf(now));
  if (last > week || (now < due && due <= now + 14 * DAY)) return null; // a later time was planned by a clock that was ahead
  return last < week ? week : week + 1;
}

/** Returns what binds a token to `app` and `week`: nothing else of the spending is in it. */
function challengeOf(issuer: string, week: number, app: string): Bytes {
  const context = fromNumber(BigInt(week), NONCE_SIZE);
  const [issuerBytes, appBytes] = [utf8(issuer), utf8(app)];
  return sha256(concat(
    KIND, fromNumber(BigInt(issuerBytes.length), 2), issuerBytes, Uint8Array.of(context.length), context,
    fromNumber(BigInt(appBytes.length), 2), appBytes,
  ));
}

/** Throws InvalidParameterError, which does not show what it is. */
function requireHeader(attestation: unknown): void {
  if (typeof attestation !== "string" || !/^[!-~]{1,4096}$/.test(attestation)) {
    throw new InvalidParameterError("tokens.attestation", "(hidden)", "must be 1 to 4096 printable ASCII characters without spaces");
  }
}
