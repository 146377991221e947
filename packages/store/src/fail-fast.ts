/** Makes commands fail in time while Redis is unavailable, for apps that have a caller waiting. */
import { StorageUnavailable } from '@posthorn/core';
import type { Cluster, Command, Redis } from 'ioredis';

/**
 * A command without a reply for `afterMs` fails. Once Redis has been disconnected for that long, commands fail at once. Without this,
 * ioredis queues unsent commands until it reconnects: indefinitely if a whole Cluster is gone, and in growing memory if no sentinel
 * replies, because callers retry.
 */
export function failFast(redis: Redis | Cluster, afterMs: number): void {
  let closedSinceMs = Number.POSITIVE_INFINITY;
  redis.on('close', () => {
    closedSinceMs = Math.min(closedSinceMs, performance.now());
  });
  redis.on('ready', () => {
    closedSinceMs = Number.POSITIVE_INFINITY;
  });
  const send = redis.sendCommand.bind(redis) as (command: Command, ...more: unknown[]) => unknown;
  redis.sendCommand = (command: Command, ...more: unknown[]) => {
    // While it connects, ioredis sends commands of its own.
    if (redis.status !== 'connect' && performance.now() - closedSinceMs > afterMs) {
      command.reject(new StorageUnavailable('Connection is closed.'));
      return command.promise;
    }
    command.setTimeout(afterMs);
    return send(command, ...more);
  };
}
