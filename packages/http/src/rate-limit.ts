/** Rate limits per caller. The counts are in Redis, so a limit holds over all processes. */
import { AppError } from '@posthorn/core';
import type { RequestHandler } from 'express';
import { RateLimiterMemory, RateLimiterRedis, RateLimiterRes } from 'rate-limiter-flexible';
import { callerName } from './auth.ts';

export interface RateLimit {
  /** Counts `points` for a caller, 1 by default. Throws `AppError` `too_many_requests` if that exceeds the limit. */
  consume(caller: string, points?: number): Promise<void>;
}

interface RateLimitOptions {
  /** An ioredis connection. */
  redis: unknown;
  /** The prefix of the keys in Redis. */
  keyPrefix: string;
  points: number;
  /** The window in which `points` are allowed. */
  seconds: number;
  /** The message for a refused caller. */
  message: string;
}

function createRateLimit({ redis, keyPrefix, points, seconds, message }: RateLimitOptions): RateLimit {
  // While Redis takes no writes, each process counts for itself, so that operators can still use the API.
  const insuranceLimiter = new RateLimiterMemory({ keyPrefix, points, duration: seconds });
  const limiter = new RateLimiterRedis({ storeClient: redis, keyPrefix, points, duration: seconds, insuranceLimiter });
  return {
    async consume(caller, count = 1) {
      try {
        // A single call that exceeds the whole limit uses all of it. Otherwise it could never succeed.
        await limiter.consume(caller, Math.min(count, points));
      } catch (error) {
        if (!(error instanceof RateLimiterRes)) throw error;
        const retryAfterS = Math.max(1, Math.ceil(error.msBeforeNext / 1000));
        throw new AppError('too_many_requests', message, { retryAfterS });
      }
    },
  };
}

/** Returns a limit per second and caller, or undefined if `perSecond` is 0. */
export function limitPerSecond(options: {
  redis: unknown;
  keyPrefix: string;
  perSecond: number;
  message: string;
}): RateLimit | undefined {
  const { perSecond, ...rest } = options;
  return perSecond === 0 ? undefined : createRateLimit({ ...rest, points: perSecond, seconds: 1 });
}

/** Counts each call of an authenticated caller. Without a limit, all calls pass. */
export function limitCalls(limit: RateLimit | undefined): RequestHandler {
  return async (_request, response, next) => {
    await limit?.consume(callerName(response));
    next();
  };
}
