/** The way out of Node: a connection of its own for each request, and fixed headers. */

import { request as requestPlain } from "node:http";
import { request as requestSecure } from "node:https";

import { TransportError } from "../core/errors.js";
import { directTransport, type Exchange, MAX_ANSWER, type Response, type Transport } from "./transport.js";

/** The wire version; the same for every device and release. */
const USER_AGENT = "hearsay/1";

/** A transport whose sockets never keep a process alive: what was on its way is repeated by the next one. */
export const nodeTransport = (endpoint: string, writeKey: string): Transport =>
  directTransport(nodeExchange, endpoint, writeKey);

export const nodeExchange: Exchange = ({ url, headers, body }, timeout) =>
  new Promise((resolve, reject) => {
    const send = url.startsWith("https:") ? requestSecure : requestPlain;
    let connected = false;
    let answer: Response | undefined;
    const settle = (kind: string): void => {
      clearTimeout(timer);
      if (answer) resolve(answer);
      else reject(new TransportError(`no answer: ${kind}`, !connected));
      request.destroy();
    };
    const timer = setTimeout(() => settle("timeout"), timeout);
    timer.unref();
    const request = send(url, {
      method: body === undefined ? "GET" : "POST",
      agent: false,
      headers: {
        "User-Agent": USER_AGENT,
        "Accept-Encoding": "identity",
        ...headers,
        ...(body !== undefined && { "Content-Length": Buffer.byteLength(body) }),
      },
    });
    request.on("socket", (socket) => {
      socket.unref();
      connected = !socket.connecting; // agents of proxies, such as editors', give a connected one
      socket.once("connect", () => (connected = true));
    });
    request.on("error", (error: NodeJS.ErrnoException) => settle(error.code ?? error.name));
    request.on("response", (response) => {
      const { statusCode = 0 } = response;
      const parts: Buffer[] = [];
      let size = 0;
      const whole = (): Buffer<ArrayBuffer> => Buffer.concat(parts);
      answer = {
        status: statusCode,
        header: (name) => response.headers[name]?.toString() ?? null,
        text: () => whole().toString(),
        bytes: () => new Uint8Array(whole()),
      };
      response.on("data", (part: Buffer) => {
        parts.push(part);
        if ((size += part.length) > MAX_ANSWER) settle("long");
      });
      response.on("error", () => settle("cut"));
      response.on("close", () => settle("end"));
    });
    request.end(body);
  });
