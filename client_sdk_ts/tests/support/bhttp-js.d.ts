/** What is used of bhttp-js, whose own types its package.json hides behind its program. */

declare module "bhttp-js" {
  export class BHttpEncoder {
    encodeRequest(request: Request): Promise<Uint8Array>;
    encodeResponse(response: Response): Promise<Uint8Array>;
  }
  export class BHttpDecoder {
    decodeRequest(message: Uint8Array): Request;
    decodeResponse(message: Uint8Array): Response;
  }
}
