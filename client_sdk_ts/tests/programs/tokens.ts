/** Does what its argument says with the JSON of its input: one-time tokens, by a device, an issuer and an origin of other people. */

import { readFileSync } from "node:fs";

import { type IssuerConfig, MediaType, PRIVATE_TOKEN_ISSUER_DIRECTORY, publicVerif, Token, TOKEN_TYPES, TokenChallenge, util } from "@cloudflare/privacypass-ts";

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

  challenge: (challenge: Challenge) => hex(challengeOf(challenge).serialize()),
};

const input = JSON.parse(readFileSync(0, "utf8")) as never;
console.log(JSON.stringify(await programs[process.argv[2] ?? ""]!(input)));
