/** Identifies callers by their key or token. */
import { hash, timingSafeEqual } from 'node:crypto';
import { AppError } from '@posthorn/core';
import type { Request, RequestHandler, Response } from 'express';
import type { AuthFailures } from './auth-failures.ts';

/** A caller that is known by a key. */
interface Principal {
  name: string;
  key: string;
}

/**
 * Returns a function that finds the principal of a key. It compares the digests of all keys in constant time, so that
 * its duration reveals nothing about any key.
 */
export function createKeyring<P extends Principal>(principals: readonly P[]): (key: string) => P | undefined {
  const known = principals.map((principal) => ({ principal, digest: digestOf(principal.key) }));
  return (key) => {
    const digest = digestOf(key);
    let found: P | undefined;
    for (const { principal, digest: knownDigest } of known) if (timingSafeEqual(knownDigest, digest)) found = principal;
    return found;
  };
}

/** Returns the key of `Authorization: Bearer <key>`, or undefined if there is none. */
export function bearerOf(request: Request): string | undefined {
  return /^Bearer +(\S+) *$/i.exec(request.headers.authorization ?? '')?.[1];
}

/**
 * Requires `Authorization: Bearer <key>` with the key of a principal, and sets the principal for `principalOf`. Wrong
 * keys are counted in `failures`. A known key always passes, even if its client has sent too many wrong ones.
 */
export function requireBearer<P extends Principal>(principals: readonly P[], failures: AuthFailures): RequestHandler {
  const find = createKeyring(principals);
  // Finds a right key in the form in which most clients send it. The duration of a miss reveals nothing about a key:
  // the map compares hashes first, and no client can know those.
  const usual = new Map(principals.map((principal) => [`Bearer ${principal.key}`, principal]));
  return (request, response, next) => {
    const known = usual.get(request.headers.authorization ?? '');
    const key = known ? known.key : bearerOf(request);
    const principal = known ?? (key === undefined ? undefined : find(key));
    if (principal) {
      setPrincipal(response, principal);
      next();
      return;
    }
    if (key === undefined) failures.missingBearer(request);
    else failures.wrongBearer(request);
    response.set('WWW-Authenticate', 'Bearer');
    next(new AppError('unauthorized', 'Send Authorization: Bearer with a valid key.'));
  };
}

/** Sets the principal of a call, for `principalOf` and `callerName`. */
export function setPrincipal(response: Response, principal: Pick<Principal, 'name'>): void {
  response.locals.principal = principal;
}

/** Returns the principal of a call. Use it behind `requireBearer` only. */
export function principalOf<P extends Principal>(response: Response): P {
  return response.locals.principal as P;
}

/** Returns the name of the caller, or '' on an open route. */
export function callerName(response: Response): string {
  return (response.locals.principal as Principal | undefined)?.name ?? '';
}

function digestOf(text: string): Buffer {
  return hash('sha256', text, 'buffer');
}
