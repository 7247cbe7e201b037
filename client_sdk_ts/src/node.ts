/** The same for Node, Electron and VS Code: files, connections of its own, and the opt-outs of a machine. */

import { join } from "node:path";

import { Client as AnyClient, type ClientOptions, requireKnown } from "./client.js";
import { nodeOptOuts } from "./privacy/node_opt_outs.js";
import { DOCUMENT_FILE, type FileStore } from "./storage/file.js";
import { nodeUptime } from "./storage/node_uptime.js";
import { nodeExchange } from "./upload/node_transport.js";

export * from "./index.js";
export { nodeOptOuts } from "./privacy/node_opt_outs.js";
export { fileStore } from "./storage/file.js";
export { nodeTransport } from "./upload/node_transport.js";

/** A client that writes what is queued before its process ends, and keeps none alive. */
export class Client<Values extends object = Record<string, unknown>> extends AnyClient<Values> {
  constructor(options: ClientOptions) {
    requireKnown(options);
    const { folder = null } = (options.store ?? {}) as Partial<FileStore>;
    super(
      {
        ...options,
        uptime: options.uptime ?? nodeUptime, // an option that is there and undefined is left out, too
        optOuts: options.optOuts ?? nodeOptOuts({ folder, ledger: folder && join(folder, DOCUMENT_FILE) }),
      },
      { atEnd, exchange: nodeExchange },
    );
  }
}

/** What is to be written before this process ends, by all of its clients. */
const unwritten = new Set<() => void>();

function atEnd(write: () => void): () => void {
  // one listener for all: a process warns of many
  if (!unwritten.size) process.once("beforeExit", writeAll);
  unwritten.add(write);
  return () => {
    unwritten.delete(write);
    if (!unwritten.size) process.off("beforeExit", writeAll);
  };
}

function writeAll(): void {
  for (const write of [...unwritten]) write();
  unwritten.clear();
}
