/** Reads a JSON body with a limit, and says exactly what is wrong with a bad one. */
import { AppError, parseJson } from '@posthorn/core';
import type { Request, RequestHandler } from 'express';
import { callerName } from './auth.ts';
import type { Budget } from './budget.ts';

/** A budget that requests use up as their bodies arrive. */
export interface Admission {
  budget: Budget;
  /** What a request counts for once so many bytes of its body have arrived; at least 1 for a body of unknown length. */
  weigh(bytes: number): number;
}

const utf8 = new TextDecoder('utf-8', { fatal: true });

/**
 * Puts the parsed body into `request.body`. Anything but uncompressed `application/json` in UTF-8 is refused with 415, more than
 * `limitBytes` with 413, text that isn't JSON with 400. With `optional`, no body at all gives undefined.
 *
 * Each admission's budget is charged to the caller for what has arrived, never for what is only announced, and until the response is
 * closed. Where it has no room for that, or for the announced length, the request is refused with 503 and no more of it is read.
 */
export function jsonBody(options: {
  limitBytes: number;
  optional?: boolean;
  admissions?: readonly Admission[];
}): RequestHandler {
  const { admissions = [] } = options;
  return async (request, response, next) => {
    try {
      const announced = Number(request.headers['content-length'] ?? 0);
      const none = announced === 0 && request.headers['transfer-encoding'] === undefined;
      if (none && options.optional) {
        request.body = undefined;
        next();
        return;
      }
      checkMediaType(request);
      if (announced > options.limitBytes) throw tooLarge(options.limitBytes);
      // A guard may have waited: the claims of a response that is closed already would never be released.
      if (response.closed) throw new AppError('invalid_json', 'The body did not arrive whole.');
      const caller = callerName(response);
      const claims = admissions.map(({ budget, weigh }) => ({ claim: budget.claimFor(caller), weigh }));
      if (!claims.every(({ claim, weigh }) => claim.hasRoomFor(weigh(announced)))) throw overloaded();
      response.once('close', () => {
        for (const { claim } of claims) claim.release();
      });
      const take = (arrivedBytes: number) => claims.every(({ claim, weigh }) => claim.growTo(weigh(arrivedBytes)));
      request.body = parseJson(decode(await readBytes(request, options.limitBytes, take)));
      next();
    } catch (error) {
      // The rest of the body is not wanted: the connection ends with the answer instead of waiting for it.
      if (!request.complete) response.set('Connection', 'close');
      next(error);
    }
  };
}

function checkMediaType(request: Request): void {
  const type = request.headers['content-type'] ?? '';
  if (!/^application\/json\s*(;\s*charset\s*=\s*"?utf-?8"?\s*)?$/i.test(type)) {
    throw new AppError('unsupported_media_type', 'Send the body as Content-Type: application/json, in UTF-8.');
  }
  if ((request.headers['content-encoding'] ?? 'identity') !== 'identity') {
    throw new AppError('unsupported_media_type', 'Send the body without Content-Encoding.');
  }
}

function readBytes(request: Request, limitBytes: number, take: (arrivedBytes: number) => boolean): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const refuse = (why: AppError) => {
      request.pause();
      request.removeAllListeners('data');
      reject(why);
    };
    const chunks: Buffer[] = [];
    let size = 0;
    request.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (size > limitBytes) refuse(tooLarge(limitBytes));
      else if (!take(size)) refuse(overloaded());
      else chunks.push(chunk);
    });
    request.on('end', () => resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)));
    request.on('error', () => reject(new AppError('invalid_json', 'The body did not arrive whole.')));
    request.on('aborted', () => reject(new AppError('invalid_json', 'The body did not arrive whole.')));
  });
}

function decode(bytes: Buffer): string {
  try {
    return utf8.decode(bytes);
  } catch (cause) {
    throw new AppError('invalid_json', 'The body is not valid UTF-8.', { cause });
  }
}

function overloaded(): AppError {
  return new AppError('overloaded', 'Too many requests are in flight, or too many of this caller. Try again.', {
    retryAfterS: 1,
  });
}

function tooLarge(limitBytes: number): AppError {
  return new AppError('body_too_large', `The body is larger than ${limitBytes} bytes.`);
}
