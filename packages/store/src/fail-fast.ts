/** Makes commands fail in time while Redis is away, for those who have a caller waiting. */
import { StorageUnavailable } from '@posthorn/core';
import type { Cluster, Command, Redis } from 'ioredis';

/**
 * A command that gets no answer for `afterMs` fails, and once Redis has been away for as long, it fails at once. ioredis keeps what it can't send
 * for when it is connected again: with a Cluster away as a whole for ever, and with no sentinel to ask in ever more memory, since
 * callers repeat what was not answered.
 */
export function failFast(redis: Redis | Cluster, afterMs: number): void {
  let awaySinceMs = Number.POSITIVE_INFINITY;
  redis.on('close', () => {
    awaySinceMs = Math.min(awaySinceMs, performance.now());
  });
  redis.on('ready', () => {
    awaySinceMs = Number.POSITIVE_INFINITY;
  });
  const send = redis.sendCommand.bind(redis) as (command: Command, ...more: unknown[]) => unknown;
  redis.sendCommand = (command: Command, ...more: unknown[]) => {
    // Connected, it sends commands of its own before it is ready.
    if (redis.status !== 'connect' && performance.now() - awaySinceMs > afterMs) {
      command.reject(new StorageUnavailable('Connection is closed.'));
      return command.promise;
    }
    command.setTimeout(afterMs);
    return send(command, ...more);
  };
}
