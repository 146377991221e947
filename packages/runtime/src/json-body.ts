/** Reads a JSON body with a limit, and says exactly what is wrong with a bad one. */
import { AppError, parseJson } from '@posthorn/core';
import type { Request, RequestHandler } from 'express';

const utf8 = new TextDecoder('utf-8', { fatal: true });

/**
 * Puts the parsed body into `request.body`. Anything but uncompressed `application/json` in UTF-8 is refused with 415, more than
 * `limitBytes` with 413, text that isn't JSON with 400. With `optional`, no body at all gives undefined.
 */
export function jsonBody(options: { limitBytes: number; optional?: boolean }): RequestHandler {
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
      request.body = parseJson(decode(await readBytes(request, options.limitBytes)));
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

function readBytes(request: Request, limitBytes: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    request.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (size > limitBytes) {
        request.pause();
        request.removeAllListeners('data');
        reject(tooLarge(limitBytes));
        return;
      }
      chunks.push(chunk);
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

function tooLarge(limitBytes: number): AppError {
  return new AppError('body_too_large', `The body is larger than ${limitBytes} bytes.`);
}
