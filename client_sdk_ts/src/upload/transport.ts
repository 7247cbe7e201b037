/**
 * The way to the collector: bytes out, an answer back.  The only module that knows HTTP.
 *
 * Only the collector can say that it has an upload, by its acknowledgement, or that it will never
 * take it, by a problem document of its own.  A proxy or a captive portal speaks for the way, not for
 * the upload: nothing is deleted on its word.
 */

import { type Bytes, concat, utf8 } from "../core/bytes.js";
import { InvalidParameterError, TransportError } from "../core/errors.js";

/** What was answered, by the collector or by whatever stands before it. */
export interface Answer {
  /** 0 of a redirect, which browsers do not show. */
  readonly status: number;
  /** Seconds. */
  readonly retryAfter?: number | null;
  readonly body?: string;
  readonly contentType?: string;
}

/**
 * Delivers uploads, one at a time.
 *
 * `headers` go beside a body; there are some with one-time tokens only.  Both throw a TransportError if there was no status within `timeout` milliseconds: whether `body`
 * arrived is not known, unless the error is `unseen`.
 */
export interface Transport {
  send(body: string, timeout: number, headers?: Headers): Promise<Answer>;
  /** Asks for what is the same for everybody: without key and cookie. */
  fetch?(path: string, timeout: number): Promise<Answer>;
  /** Whether each report goes in an upload of its own, so that nothing in an upload links two. */
  readonly alone?: boolean;
}

export type Headers = Readonly<Record<string, string>>;

/** A request, whose headers are all but what its platform always adds. */
export interface Request {
  readonly url: string;
  readonly headers: Headers;
  /** Without one it asks. */
  readonly body?: string | Bytes | undefined;
}

/** A status, and as much of what follows it as is read. */
export interface Response {
  readonly status: number;
  header(name: string): string | null;
  text(): string;
  bytes(): Bytes;
}

/** Makes a request.  Throws a TransportError if there was no status within `timeout` milliseconds. */
export type Exchange = (request: Request, timeout: number) => Promise<Response>;

/** What an answer means: delete; send the same bytes later; drop; keep, as the way is blocked. */
export type Outcome = "accepted" | "transient" | "permanent" | "incapable";

export const PATH = "/v1/reports";
export const RETIRED_PATH = "/v1/retired";
export const TOO_LARGE = 413;
/** Bytes of an answer that are read; a rejection for each of 256 columns is a third of it. */
export const MAX_ANSWER = 65_536;
/** Milliseconds for one upload in all, however long the caller would wait. */
export const MAX_EXCHANGE = 60_000;

const ACCEPTED = 202;
const TRANSIENT = [408, 425, 429]; // every 5xx is transient too
const PERMANENT = [400, 409, 410, 413, 415, 422]; // these blame the body, nothing else does
const PROBLEM = "application/problem+json";
const DATE = /^\w{3}, \d\d \w{3} \d{4} [\d:]{8} GMT$/; // RFC 9110; engines read much else as a date

export function outcomeOf(answer: Answer): Outcome {
  const { status } = answer;
  if (status === ACCEPTED && isWhole(objectIn(answer)["accepted"])) return "accepted";
  if (TRANSIENT.includes(status) || (status > 499 && status < 600)) return "transient";
  return PERMANENT.includes(status) && isOurs(answer) ? "permanent" : "incapable";
}

/** Returns how many reports were rejected and whether the upload was known; it only feeds the counts. */
export function readAcknowledgement(answer: Answer): { rejected: number; duplicate: boolean } {
  const { rejected, duplicate } = objectIn(answer);
  const counts = (Array.isArray(rejected) ? rejected : []).map((entry) => (entry as { count?: unknown } | null)?.count);
  return {
    rejected: counts.filter((count) => isWhole(count) && count > 0).reduce<number>((sum, count) => sum + (count as number), 0),
    duplicate: duplicate === true,
  };
}

/** Whether the collector itself answered, and its document came whole. */
function isOurs(answer: Answer): boolean {
  const { type, status } = objectIn(answer);
  return (
    answer.contentType?.split(";")[0]?.trim().toLowerCase() === PROBLEM &&
    typeof type === "string" && type.startsWith("urn:hearsay:problem:") && status === answer.status
  );
}

function objectIn({ body = "" }: Answer): Record<string, unknown> {
  try {
    const answer: unknown = body.length > MAX_ANSWER ? null : JSON.parse(body);
    return answer && typeof answer === "object" ? (answer as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

const isWhole = (value: unknown): value is number => Number.isInteger(value);

/**
 * Returns the seconds of a Retry-After header: a number, or a date minus the date `sent`.
 *
 * A date is compared with the collector's own Date, so a device's wrong clock does not matter.
 */
export function retryAfter(status: number, text: string | null, sent: string | null): number | null {
  if (status === ACCEPTED || text === null) return null;
  if (/^[0-9]+$/.test(text)) return Number(text.slice(0, 9));
  if (!DATE.test(text) || !DATE.test(sent ?? "")) return null;
  const seconds = (Date.parse(text) - Date.parse(sent!)) / 1_000;
  return Number.isFinite(seconds) ? seconds : null;
}

/** What a transport needs to make requests. */
export interface Address {
  /** Without PATH, which some give along, and without a slash at its end. */
  readonly base: string;
  /** As a header; it is in no error and no log. */
  readonly authorization: string;
}

/** Returns where to send.  Throws InvalidParameterError; neither is shown where it could hold a secret. */
export function addressOf(endpoint: string, writeKey: string): Address {
  requireUrl("endpoint", endpoint);
  if (typeof writeKey !== "string" || !/^[!-~]{1,512}$/.test(writeKey)) {
    throw new InvalidParameterError("writeKey", "(hidden)", "must be 1 to 512 printable ASCII characters without spaces");
  }
  const base = endpoint.replace(/\/+$/, "").replace(/\/v1\/reports$/, "").replace(/\/+$/, "");
  return { base, authorization: `Bearer ${writeKey}` };
}

/** Throws InvalidParameterError: `url` cannot be sent to. */
export function requireUrl(parameter: string, url: string): void {
  // not by URL, which React Native supports in part only
  const [, scheme, host] = /^(https?):\/\/(\[[\da-f:.]+\]|[^/:@?#\s]+)(:\d+)?(\/[^?#\s]*)?$/i.exec(url) ?? [];
  const shown = String(url).split("@").pop()?.split("?")[0];
  if (!scheme || !host) {
    throw new InvalidParameterError(parameter, shown, "must be a URL with a host, and without user, query or fragment");
  }
  if (scheme.toLowerCase() === "http" && !/^(localhost|127(\.\d+){3}|\[::1\])$/i.test(host)) {
    throw new InvalidParameterError(parameter, shown, "must begin with https:// (http:// only to this machine)");
  }
}

/** A transport that speaks with the collector itself. */
export function directTransport(exchange: Exchange, endpoint: string, writeKey: string): Transport {
  const { base, authorization } = addressOf(endpoint, writeKey);
  const answered = async (path: string, timeout: number, more: Headers, body?: string): Promise<Answer> =>
    answerOf(await exchange({ url: base + path, headers: { Accept: "application/json", ...more }, body }, Math.min(timeout, MAX_EXCHANGE)));
  return {
    send: (body, timeout, headers) =>
      answered(PATH, timeout, { "Content-Type": "application/json", "Authorization": authorization, ...headers }, body),
    fetch: (path, timeout) => answered(path, timeout, {}),
  };
}

function answerOf(response: Response): Answer {
  const { status } = response;
  return {
    status,
    retryAfter: retryAfter(status, response.header("retry-after"), response.header("date")),
    contentType: response.header("content-type") ?? "",
    body: response.text(),
  };
}

/** A transport by `fetch`: no cookies, no referrer, no cache and no redirects. */
export const fetchTransport = (endpoint: string, writeKey: string): Transport =>
  directTransport(fetchExchange, endpoint, writeKey);

export const fetchExchange: Exchange = async ({ url, headers, body }, timeout) => {
  const abort = new AbortController();
  const timer = setTimeout(() => abort.abort(), timeout);
  try {
    const response = await fetch(url, {
      method: body === undefined ? "GET" : "POST",
      headers: { "Accept-Language": "*", ...headers }, // in place of the user's
      ...(body !== undefined && { body }),
      credentials: "omit",
      referrerPolicy: "no-referrer",
      cache: "no-store",
      redirect: "manual",
      signal: abort.signal,
    });
    const { status } = response;
    return { status, header: (name) => response.headers.get(name), ...(await contentOf(response)) };
  } catch (error) {
    // the cause is left out, as its request holds the key
    throw new TransportError(`no answer: ${error instanceof Error ? error.name : "failure"}`);
  } finally {
    clearTimeout(timer);
    abort.abort();
  }
};

/** Returns the beginning of the body; what is lost of it does not change the status. */
async function contentOf(response: globalThis.Response): Promise<Pick<Response, "text" | "bytes">> {
  const parts: Uint8Array[] = [];
  try {
    if (!response.body) {
      const text = await response.text(); // React Native has it whole only
      return { text: () => text, bytes: () => utf8(text) };
    }
    const reader = response.body.getReader();
    for (let size = 0; size <= MAX_ANSWER;) {
      const { done, value } = await reader.read();
      if (done) break;
      parts.push(value);
      size += value.length;
    }
    await reader.cancel();
  } catch {
    // it was cut
  }
  return { text: () => (parts.length ? new TextDecoder().decode(concat(...parts)) : ""), bytes: () => concat(...parts) };
}
