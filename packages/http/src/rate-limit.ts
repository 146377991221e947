/** Limits how often a caller may do something, over all processes together: the count is in Redis. */
import { AppError } from '@posthorn/core';
import type { RequestHandler } from 'express';
import { RateLimiterMemory, RateLimiterRedis, RateLimiterRes } from 'rate-limiter-flexible';
import { callerName } from './auth.ts';

export interface RateLimit {
  /** Counts `points` for a caller. Throws `AppError` `too_many_requests` once the limit is passed. */
  consume(caller: string, points?: number): Promise<void>;
}

interface RateLimitOptions {
  /** An ioredis connection. */
  redis: unknown;
  /** The first part of the keys in Redis. */
  keyPrefix: string;
  /** So many in so many seconds. */
  points: number;
  seconds: number;
  /** What the refused caller is told. */
  message: string;
}

function createRateLimit({ redis, keyPrefix, points, seconds, message }: RateLimitOptions): RateLimit {
  // A Redis that takes no writes must not keep operators from looking: each process counts for itself then.
  const insuranceLimiter = new RateLimiterMemory({ keyPrefix, points, duration: seconds });
  const limiter = new RateLimiterRedis({ storeClient: redis, keyPrefix, points, duration: seconds, insuranceLimiter });
  return {
    async consume(caller, count = 1) {
      try {
        // One call that is larger than the limit as a whole may take all of it, or it could never be made.
        await limiter.consume(caller, Math.min(count, points));
      } catch (error) {
        if (!(error instanceof RateLimiterRes)) throw error;
        const retryAfterS = Math.max(1, Math.ceil(error.msBeforeNext / 1000));
        throw new AppError('too_many_requests', message, { retryAfterS });
      }
    },
  };
}

/** A limit of so many a second for each caller, for a setting in which 0 means none. */
export function limitPerSecond(options: {
  redis: unknown;
  keyPrefix: string;
  perSecond: number;
  message: string;
}): RateLimit | undefined {
  const { perSecond, ...rest } = options;
  return perSecond === 0 ? undefined : createRateLimit({ ...rest, points: perSecond, seconds: 1 });
}

/** Counts each call of a known caller; behind authentication. Lets all pass where there is no limit. */
export function limitCalls(limit: RateLimit | undefined): RequestHandler {
  return async (_request, response, next) => {
    await limit?.consume(callerName(response));
    next();
  };
}
