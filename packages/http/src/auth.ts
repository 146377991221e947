/** Keys and tokens: who is calling, found without giving away how close a guess was. */
import { createHash, timingSafeEqual } from 'node:crypto';
import { AppError } from '@posthorn/core';
import type { Request, RequestHandler, Response } from 'express';
import type { AuthFailures } from './auth-failures.ts';

/** A key and the name of whoever it belongs to. */
export interface Holder {
  name: string;
  key: string;
}

/**
 * Finds the holder of a key. Each key is compared, by the digests of both and in constant time, whichever fits: the time taken
 * says nothing about any of them.
 */
export function createKeyring<H extends Holder>(holders: readonly H[]): (key: string) => H | undefined {
  const known = holders.map((holder) => ({ holder, digest: digestOf(holder.key) }));
  return (key) => {
    const digest = digestOf(key);
    let found: H | undefined;
    for (const one of known) if (timingSafeEqual(one.digest, digest)) found = one.holder;
    return found;
  };
}

/** The key of `Authorization: Bearer <key>`, or undefined where there is none. */
export function bearerOf(request: Request): string | undefined {
  return /^Bearer +(\S+) *$/i.exec(request.headers.authorization ?? '')?.[1];
}

/**
 * Lets a call pass that carries `Authorization: Bearer <key>` of one of the holders, and keeps the holder for `holderOf`. A wrong key goes
 * to `failures`; a known one always passes, however many wrong ones came from the same client.
 */
export function requireBearer<H extends Holder>(holders: readonly H[], failures: AuthFailures): RequestHandler {
  const find = createKeyring(holders);
  return (request, response, next) => {
    const key = bearerOf(request);
    const holder = key === undefined ? undefined : find(key);
    if (holder) {
      keepHolder(response, holder);
      next();
      return;
    }
    if (key !== undefined) failures.wrongBearer(request);
    response.set('WWW-Authenticate', 'Bearer');
    next(new AppError('unauthorized', 'Send Authorization: Bearer with a key that is known here.'));
  };
}

/** Notes who makes this call, for `holderOf` and `callerName`. */
export function keepHolder(response: Response, holder: Holder): void {
  response.locals.holder = holder;
}

/** Who made this call; only behind `requireBearer`. */
export function holderOf<H extends Holder>(response: Response): H {
  return response.locals.holder as H;
}

/** The name of whoever made this call; '' where nobody had to say. */
export function callerName(response: Response): string {
  return (response.locals.holder as Holder | undefined)?.name ?? '';
}

function digestOf(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
