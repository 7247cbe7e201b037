/** The way to the collector from Node: a connection of its own for each request, and fixed headers. */

import { request as requestPlain } from "node:http";
import { request as requestSecure } from "node:https";

import { TransportError } from "../core/errors.js";
import { addressOf, type Answer, MAX_ANSWER, MAX_EXCHANGE, PATH, retryAfter, type Transport } from "./transport.js";

/** The wire version; the same for every device and release. */
const USER_AGENT = "hearsay/1";

/** A transport whose sockets never keep a process alive: what was on its way is repeated by the next one. */
export function nodeTransport(endpoint: string, writeKey: string): Transport {
  const { base, authorization } = addressOf(endpoint, writeKey);
  const exchange = (path: string, body: string | undefined, timeout: number): Promise<Answer> =>
    new Promise((resolve, reject) => {
      const send = base.startsWith("https:") ? requestSecure : requestPlain;
      let connected = false;
      let answer: Answer | undefined;
      const settle = (kind: string): void => {
        clearTimeout(timer);
        if (answer) resolve(answer);
        else reject(new TransportError(`no answer: ${kind}`, !connected));
        request.destroy();
      };
      const timer = setTimeout(() => settle("timeout"), Math.min(timeout, MAX_EXCHANGE));
      timer.unref();
      const request = send(base + path, {
        method: body === undefined ? "GET" : "POST",
        agent: false,
        headers: {
          "User-Agent": USER_AGENT,
          "Accept": "application/json",
          "Accept-Encoding": "identity",
          ...(body !== undefined && {
            "Content-Type": "application/json",
            "Content-Length": Buffer.byteLength(body),
            "Authorization": authorization,
          }),
        },
      });
      request.on("socket", (socket) => {
        socket.unref();
        connected = !socket.connecting; // agents of proxies, as those of editors, give one that is
        socket.once("connect", () => (connected = true));
      });
      request.on("error", (error: NodeJS.ErrnoException) => settle(error.code ?? error.name));
      request.on("response", (response) => {
        const { headers, statusCode = 0 } = response;
        const header = (name: string): string | null => headers[name]?.toString() ?? null;
        let text = "";
        const take = (): void => {
          answer = {
            status: statusCode,
            retryAfter: retryAfter(statusCode, header("retry-after"), header("date")),
            contentType: header("content-type") ?? "",
            body: text,
          };
        };
        take();
        response.setEncoding("utf8");
        response.on("data", (part: string) => {
          text += part;
          take();
          if (text.length > MAX_ANSWER) settle("long");
        });
        response.on("error", () => settle("cut"));
        response.on("close", () => settle("end"));
      });
      request.end(body);
    });
  return { send: (body, timeout) => exchange(PATH, body, timeout), fetch: (path, timeout) => exchange(path, undefined, timeout) };
}
