/** Counts, logs and limits wrong keys and tokens per client, in bounded memory. It never logs what was sent. */
import { AppError, atMost } from '@posthorn/core';
import { boundedLog, type Logger } from '@posthorn/runtime';
import type { Request } from 'express';
import { LRUCache } from 'lru-cache';
import { Counter, type Registry } from 'prom-client';
import { ipNetwork } from './ip-network.ts';

/** Clients that are tracked; the least recently used one is evicted. */
const MAX_CLIENTS = 10_000;

/** Wrong bearer keys that a client may send before it gets 429 instead of 401. A known key always passes. */
const BEARER_LIMIT = { failures: 60, windowMs: 60_000 };
/** Wrong tokens that a client may type in. After these, even the right one is refused. */
const TYPED_LIMIT = { failures: 10, windowMs: 15 * 60_000 };

/** A key in `Authorization: Bearer`, the token of a sign-in, or a password in `Authorization: Basic`. */
type CredentialKind = 'bearer' | 'sign_in' | 'basic';

export interface AuthFailures {
  /** Counts a wrong bearer key. Throws `AppError` `too_many_requests` if its client has sent too many. */
  wrongBearer(request: Request): void;
  /** Logs a call without a bearer key. That is no guess, so it is neither counted nor limited. */
  missingBearer(request: Request): void;
  /**
   * Checks a token that a person typed in. An attempt is counted before the check, so that a burst of guesses cannot
   * exceed the limit, and uncounted if it is right. Returns the result of `check`; undefined means wrong. Throws
   * `AppError` `too_many_requests` if the limit is reached, whatever was typed.
   */
  checkTyped<T>(request: Request, kind: 'sign_in' | 'basic', check: () => T | undefined): T | undefined;
}

export function createAuthFailures({ registry, logger }: { registry: Registry; logger: Logger }): AuthFailures {
  const counter = new Counter({
    name: 'posthorn_auth_failures_total',
    help: 'Calls with a wrong key or token, by kind of credential and outcome: refused (401), limited (429)',
    labelNames: ['kind', 'outcome'],
    registers: [registry],
  });
  const log = boundedLog((fields) => logger.warn(fields, 'auth.failed'));
  const bearers = createFailureCounts(BEARER_LIMIT.windowMs);
  const typed = createFailureCounts(TYPED_LIMIT.windowMs);
  const note = (request: Request, kind: CredentialKind, client: string, outcome: 'refused' | 'limited' | 'missing') => {
    if (outcome !== 'missing') counter.inc({ kind, outcome });
    // The caller chooses the path, so it is truncated. The query is left out, because it may hold a secret by mistake.
    log({ kind, outcome, client, method: request.method, path: request.baseUrl + request.path.slice(0, 100) });
  };
  const refuse = (retryAfterMs: number, what: string) => {
    const retryAfterS = Math.max(1, Math.ceil(retryAfterMs / 1000));
    const message = `Too many wrong ${what} from this IP. Retry in ${Math.ceil(retryAfterS / 60)} min.`;
    return new AppError('too_many_requests', message, { retryAfterS });
  };
  return {
    wrongBearer(request) {
      const client = clientOf(request);
      const failures = bearers.memo(client);
      failures.count += 1;
      const isOver = failures.count > BEARER_LIMIT.failures;
      note(request, 'bearer', client, isOver ? 'limited' : 'refused');
      if (isOver) throw refuse(bearers.getRemainingTTL(client), 'keys');
    },
    missingBearer: (request) => note(request, 'bearer', clientOf(request), 'missing'),
    checkTyped(request, kind, check) {
      const client = clientOf(request);
      const failures = typed.memo(client);
      if (failures.count >= TYPED_LIMIT.failures) {
        note(request, kind, client, 'limited');
        throw refuse(typed.getRemainingTTL(client), 'tokens');
      }
      failures.count += 1;
      const result = check();
      if (result === undefined) note(request, kind, client, 'refused');
      else failures.count -= 1;
      return result;
    },
  };
}

function clientOf(request: Request): string {
  return ipNetwork(request.ip ?? 'unknown');
}

/**
 * Counts the failures of each client in a window that starts with its first one. `memo` returns the counter of a
 * client.
 */
function createFailureCounts(windowMs: number) {
  return new LRUCache<string, { count: number }>({
    ...atMost(MAX_CLIENTS),
    ttl: windowMs,
    memoMethod: () => ({ count: 0 }),
  });
}
