/** Reads a JSON body of limited size. */
import { AppError, parseJson } from '@posthorn/core';
import type { Request, RequestHandler, Response } from 'express';
import { callerName } from './auth.ts';
import type { Budget } from './budget.ts';

/** A budget that requests use while their bodies arrive. */
export interface BodyBudget {
  budget: Budget;
  /**
   * Returns how much of the budget a request uses after so many bytes of its body. At least 1, also for a body of
   * unknown length.
   */
  weigh(bytes: number): number;
}

/** Decides when the large body of a caller is parsed, which blocks the event loop. Returns undefined for at once. */
export type TurnFor = (caller: string) => Promise<void> | undefined;

/** Parsing a smaller body takes less than a millisecond. */
const LARGE_BYTES = 16 * 1024;
/**
 * Maximum number of pieces of a body: chunks, or what a read from the network returns. Each takes a microsecond or
 * more; 8 MiB in packets are 6,000.
 */
const MAX_PIECES = 16_384;
/**
 * Each time this many pieces have come, they are joined: the object for a small piece takes more memory than its bytes.
 */
const JOINED_PIECES = 128;

const utf8 = new TextDecoder('utf-8', { fatal: true });

/** Makes `jsonBody` keep the shares of its budgets until `handling` has settled, even if the client goes away. */
export function handledBy<T>(response: Response, handling: Promise<T>): Promise<T> {
  response.locals.handling = handling;
  return handling;
}

/**
 * Sets `request.body` to the parsed body. Returns 415 for anything but uncompressed `application/json` in UTF-8, 413
 * for more than `maxBytes`, and 400 for invalid JSON. With `optional`, a missing body counts as `{}`.
 *
 * Each budget is charged for the bytes that have arrived, not for the announced length, until the response is closed
 * and the promise given to `handledBy` has settled. If a budget has no room for the announced length or for what
 * arrives, the request gets 503.
 *
 * The rest of a refused body is read and dropped, for as long as a request may take: many clients read no response
 * before they have sent everything, and closing a connection with unread bytes resets it, so they would see a failed
 * connection and try again.
 */
export function jsonBody(options: {
  maxBytes: number;
  /** The setting behind `maxBytes`, which the refusal names. */
  maxBytesSetting?: string | undefined;
  optional?: boolean;
  bodyBudgets?: readonly BodyBudget[];
  /** For bodies of 16 KiB and more. */
  turnFor?: TurnFor | undefined;
}): RequestHandler {
  const { bodyBudgets = [] } = options;
  return async (request, response, next) => {
    try {
      const announced = Number(request.headers['content-length'] ?? 0);
      const none = announced === 0 && request.headers['transfer-encoding'] === undefined;
      if (none && options.optional) {
        request.body = {};
        next();
        return;
      }
      checkMediaType(request);
      if (announced > options.maxBytes) throw tooLarge(options);
      // The response may have closed while a guard waited. Then nothing would release the shares.
      if (response.closed) throw incomplete();
      const caller = callerName(response);
      const shares = bodyBudgets.map(({ budget, weigh }) => ({ share: budget.shareFor(caller), weigh }));
      if (!shares.every(({ share, weigh }) => share.hasRoomFor(weigh(announced)))) throw overloaded();
      const release = () => {
        for (const { share } of shares) share.release();
      };
      response.on('close', () => {
        const handling = response.locals.handling as Promise<unknown> | undefined;
        if (handling) handling.then(release, release);
        else release();
      });
      const growTo = (arrivedBytes: number) => shares.every(({ share, weigh }) => share.growTo(weigh(arrivedBytes)));
      const bytes = await readBytes(request, options, growTo);
      const takeTurn = async () => {
        const turn = options.turnFor?.(caller);
        if (turn) await handledBy(response, turn);
      };
      const isLarge = bytes.length >= LARGE_BYTES;
      if (isLarge) await takeTurn();
      // The client is gone, and with it the shares.
      if (response.closed) throw incomplete();
      request.body = parseJson(decode(bytes));
      if (isLarge) {
        // The route then validates the values, which may take as long as parsing them.
        await takeTurn();
        if (response.closed) throw incomplete();
      }
      next();
    } catch (error) {
      next(error);
      request.resume();
    }
  };
}

function checkMediaType(request: Request): void {
  const type = request.headers['content-type'] ?? '';
  // Most clients send just this.
  if (type !== 'application/json' && !isJson(type)) {
    throw new AppError('unsupported_media_type', 'Send the body as Content-Type: application/json, in UTF-8.');
  }
  if ((request.headers['content-encoding'] ?? 'identity') !== 'identity') {
    throw new AppError('unsupported_media_type', 'Send the body without Content-Encoding.');
  }
}

/** Only the charset matters: parameters that a recipient does not know must be ignored (RFC 2045, section 1). */
function isJson(type: string): boolean {
  const charset = /;\s*charset\s*=\s*"?([^\s;"]*)/i.exec(type)?.[1] ?? 'utf-8';
  return /^application\/json\s*(;|$)/i.test(type) && /^utf-?8$/i.test(charset);
}

/** How large a body may be, and the setting that says so. */
type Limit = Pick<Parameters<typeof jsonBody>[0], 'maxBytes' | 'maxBytesSetting'>;

function readBytes(request: Request, limit: Limit, growTo: (arrivedBytes: number) => boolean): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const refuse = (why: AppError) => {
      request.pause();
      request.removeAllListeners('data');
      // What has arrived no longer counts once the response is closed, which may be long before the end of the body.
      joined = [];
      pieces = [];
      reject(why);
    };
    let joined: Buffer[] = [];
    let pieces: Buffer[] = [];
    let size = 0;
    request.on('data', (piece: Buffer) => {
      size += piece.length;
      if (size > limit.maxBytes) refuse(tooLarge(limit));
      else if (!growTo(size)) refuse(overloaded());
      else if (pieces.push(piece) === JOINED_PIECES) {
        joined.push(Buffer.concat(pieces));
        pieces = [];
        if (joined.length === MAX_PIECES / JOINED_PIECES) refuse(tooManyPieces());
      }
    });
    request.on('end', () => {
      const [only] = pieces;
      resolve(only && joined.length + pieces.length === 1 ? only : Buffer.concat([...joined, ...pieces]));
    });
    request.on('error', () => reject(incomplete()));
  });
}

function decode(bytes: Buffer): string {
  try {
    return utf8.decode(bytes);
  } catch (cause) {
    throw new AppError('invalid_json', 'The body is not valid UTF-8.', { cause });
  }
}

function incomplete(): AppError {
  return new AppError('invalid_json', 'The body is incomplete.');
}

function overloaded(): AppError {
  return new AppError('overloaded', 'Too many requests in flight; retry shortly.', { retryAfterS: 1 });
}

function tooManyPieces(): AppError {
  return new AppError('body_too_large', `The body came in ${MAX_PIECES} pieces or more. Send larger chunks.`);
}

function tooLarge({ maxBytes, maxBytesSetting: setting }: Limit): AppError {
  return new AppError('body_too_large', `The body is larger than ${maxBytes} bytes${setting ? ` (${setting})` : ''}.`);
}
