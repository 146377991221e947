/** Reads a JSON body with a limit, and says exactly what is wrong with a bad one. */
import { AppError, parseJson } from '@posthorn/core';
import type { Request, RequestHandler } from 'express';

/** Memory that the bodies of calls in hand may take together, so that any number of callers at once can't exhaust it. */
export interface BodyRoom {
  leftBytes: number;
}

const utf8 = new TextDecoder('utf-8', { fatal: true });

/**
 * Puts the parsed body into `request.body`. Anything but uncompressed `application/json` in UTF-8 is refused with 415, more than
 * `limitBytes` with 413, text that isn't JSON with 400. With `optional`, no body at all gives undefined.
 * What finds no room is refused with 503; a body keeps its room until its call is over.
 */
export function jsonBody(options: { limitBytes: number; optional?: boolean; room?: BodyRoom }): RequestHandler {
  const { room = { leftBytes: Number.POSITIVE_INFINITY } } = options;
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
      if (announced > room.leftBytes) throw overloaded();
      let takenBytes = 0;
      response.once('close', () => {
        room.leftBytes += takenBytes;
      });
      const take = (bytes: number) => {
        takenBytes += bytes;
        room.leftBytes -= bytes;
        return room.leftBytes >= 0;
      };
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

function readBytes(request: Request, limitBytes: number, take: (bytes: number) => boolean): Promise<Buffer> {
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
      else if (!take(chunk.length)) refuse(overloaded());
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
  return new AppError('overloaded', 'There is more in hand than memory has room for. Try again.', { retryAfterS: 1 });
}

function tooLarge(limitBytes: number): AppError {
  return new AppError('body_too_large', `The body is larger than ${limitBytes} bytes.`);
}
