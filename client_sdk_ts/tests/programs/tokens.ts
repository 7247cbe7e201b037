/** Does what its argument says with the JSON of its input: one-time tokens of other people and of ours. */

import { readFileSync } from "node:fs";

import { type IssuerConfig, MediaType, PRIVATE_TOKEN_ISSUER_DIRECTORY, publicVerif, Token, TOKEN_TYPES, TokenChallenge, util } from "@cloudflare/privacypass-ts";

import { everything } from "../../src/all.js";
import { toNumber } from "../../src/core/bytes.js";
import type { Randomness } from "../../src/core/randomness.js";
import { Client, type ClientOptions, memoryStore, noOptOuts } from "../../src/node.js";
import { tokens } from "../../src/parts/tokens.js";
import { blind, finalize } from "../../src/upload/blind_rsa.js";

const MODE = publicVerif.BlindRSAMode.PSS;
const ALGORITHM = { name: "RSA-PSS", hash: "SHA-384" };

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex");
const bytesOf = (text: string): Uint8Array<ArrayBuffer> => Uint8Array.from(Buffer.from(text, "hex"));

const keyOf = (text: string): Promise<CryptoKey> =>
  crypto.subtle.importKey("spki", new Uint8Array(util.convertRSASSAPSSToEnc(bytesOf(text))), ALGORITHM, true, ["verify"]);

interface Challenge {
  issuer: string;
  context: string;
  origin: string;
}

const challengeOf = ({ issuer, context, origin }: Challenge): TokenChallenge =>
  new TokenChallenge(TOKEN_TYPES.BLIND_RSA.value, issuer, bytesOf(context), [origin]);

const programs: Record<string, (input: never) => unknown> = {
  /** Gets a token of an issuer over HTTP, for the key of that place in its directory. */
  ask: async ({ url, place, attestation, ...challenge }: Challenge & { url: string; place: number; attestation: string }) => {
    const directory = (await (await fetch(url + PRIVATE_TOKEN_ISSUER_DIRECTORY)).json()) as IssuerConfig;
    const key = Buffer.from(directory["token-keys"][place]!["token-key"], "base64url");
    const client = new publicVerif.Client(MODE);
    const request = await client.createTokenRequest(challengeOf(challenge), new Uint8Array(key));
    const response = await fetch(url + directory["issuer-request-uri"], {
      method: "POST",
      headers: { "Content-Type": MediaType.PRIVATE_TOKEN_REQUEST, "Accept": MediaType.PRIVATE_TOKEN_RESPONSE, "Authorization": `Bearer ${attestation}` },
      body: new Uint8Array(request.serialize()),
    });
    const answer = client.deserializeTokenResponse(new Uint8Array(await response.arrayBuffer()));
    return { kind: response.headers.get("content-type"), token: hex((await client.finalize(answer)).serialize()) };
  },

  /** Signs token requests by a secret key. */
  issue: async ({ secret, key, requests }: { secret: string; key: string; requests: string[] }) => {
    const privateKey = await crypto.subtle.importKey("pkcs8", bytesOf(secret), ALGORITHM, true, ["sign"]);
    const issuer = new publicVerif.Issuer(MODE, "issuer.example", privateKey, await keyOf(key));
    const answers = requests.map(async (request) =>
      hex((await issuer.issue(publicVerif.TokenRequest.deserialize(TOKEN_TYPES.BLIND_RSA, bytesOf(request)))).serialize()));
    return { key_id: hex(await issuer.tokenKeyID()), answers: await Promise.all(answers) };
  },

  /** Says which tokens are good under a key. */
  verify: async ({ key, tokens }: { key: string; tokens: string[] }) => {
    const [origin, publicKey] = [new publicVerif.Origin(MODE), await keyOf(key)];
    return Promise.all(tokens.map((token) => origin.verify(Token.deserialize(TOKEN_TYPES.BLIND_RSA, bytesOf(token)), publicKey)));
  },

  /** The steps of a device of ours with the chances of a vector. */
  steps: async ({ key, message, salt, factor, answer }: { key: string; message: string; salt: string; factor: string; answer: string }) => {
    const [modulus, chance] = [toNumber(bytesOf(key).slice(81, -5)), BigInt(`0x${factor}`)];
    const draws = [toNumber(bytesOf(salt)), chance];
    const { blinded, inverse } = await blind(bytesOf(message), modulus, { uniform: () => draws.shift()! } as unknown as Randomness);
    const signature = await finalize(bytesOf(message), modulus, inverse, bytesOf(answer));
    return { blinded: hex(blinded), signature: signature && hex(signature) };
  },

  /** What is sent with tokens to a collector, once they are there. */
  report: async ({ values, patience, ...given }: { values: Record<string, unknown>; patience: number } & Omit<ClientOptions, "mechanisms" | "store" | "consent">) => {
    const client = new Client({ ...given, mechanisms: [...everything, tokens], consent: "granted", store: memoryStore(), optOuts: noOptOuts });
    for (const [name, value] of Object.entries(values)) client.record(name, value);
    const passes: boolean[] = [];
    for (let pass = 0; pass < 2; pass++) passes.push((await client.flush(patience)).complete);
    await client.close();
    return { passes, counts: Object.fromEntries(Object.entries(client.stats()).filter(([, count]) => count)) };
  },

  challenge: (challenge: Challenge) => hex(challengeOf(challenge).serialize()),
};

const input = JSON.parse(readFileSync(0, "utf8")) as never;
console.log(JSON.stringify(await programs[process.argv[2] ?? ""]!(input)));
