/** Rate limits per caller. The counts are in Redis, so a limit holds over all processes. */
import { AppError } from '@posthorn/core';
import type { RequestHandler } from 'express';
import { RateLimiterMemory, RateLimiterRedis, RateLimiterRes, RLWrapperTimeouts } from 'rate-limiter-flexible';
import { callerName } from './auth.ts';

export interface RateLimit {
  /** Counts `points` for a caller, 1 by default. Throws `AppError` `too_many_requests` if that exceeds the limit. */
  consume(caller: string, points?: number): Promise<void>;
}

/**
 * Counts in the current window, or in a new one. After the clock of Redis was set back, the package's own script would
 * keep the old window for that much longer and refuse its callers meanwhile.
 */
const COUNT = `
local windowMs = 1000 * ARGV[2]
local leftMs = redis.call('PTTL', KEYS[1])
if leftMs < 0 or leftMs > windowMs then
  redis.call('SET', KEYS[1], 0, 'PX', windowMs)
  leftMs = windowMs
end
return {redis.call('INCRBY', KEYS[1], ARGV[1]), leftMs}`;

/**
 * A call does not wait longer for its count: in a Redis Cluster, that may be on a master that hangs, and all else on
 * others.
 */
const MAX_WAIT_MS = 500;

/** Returns a limit per second and caller, or undefined if `perSecond` is 0. */
export function limitPerSecond(options: {
  /** An ioredis connection. */
  redis: unknown;
  /** The prefix of the keys in Redis. */
  keyPrefix: string;
  perSecond: number;
  /** The message for a refused caller. */
  message: string;
}): RateLimit | undefined {
  const { redis, keyPrefix, perSecond, message } = options;
  if (perSecond === 0) return undefined;
  const limits = { keyPrefix, points: perSecond, duration: 1 };
  const limiter = new RLWrapperTimeouts({
    limiter: new RateLimiterRedis({ ...limits, storeClient: redis, customIncrTtlLuaScript: COUNT }),
    timeoutMs: MAX_WAIT_MS,
    // While Redis does not count, each process does for itself, so that operators can still use the API.
    insuranceLimiter: new RateLimiterMemory(limits),
  });
  return {
    async consume(caller, points = 1) {
      try {
        // A single call that exceeds the whole limit uses all of it. Otherwise it could never succeed.
        await limiter.consume(caller, Math.min(points, perSecond));
      } catch (error) {
        if (!(error instanceof RateLimiterRes)) throw error;
        const retryAfterS = Math.max(1, Math.ceil(error.msBeforeNext / 1000));
        throw new AppError('too_many_requests', message, { retryAfterS });
      }
    },
  };
}

/** Counts each call of an authenticated caller. Without a limit, all calls pass. */
export function limitCalls(limit: RateLimit | undefined): RequestHandler {
  return async (_request, response, next) => {
    await limit?.consume(callerName(response));
    next();
  };
}
