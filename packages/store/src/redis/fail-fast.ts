/** Makes commands fail in time while Redis is unavailable, for apps that have a caller waiting. */
import { StorageUnavailable } from '@posthorn/core';
import { Cluster, type Command, type Redis } from 'ioredis';
import type { SentCommand } from './storage-errors.ts';

/** What ioredis sends while it connects: the handshake, and whether Redis still loads, or the Cluster is complete. */
const OWN_COMMANDS = new Set(['auth', 'hello', 'select', 'client', 'readonly', 'info', 'cluster']);

/**
 * A command without a reply for `afterMs` fails. Once Redis has been disconnected for that long, or loads its data
 * after a restart, commands fail at once. Without this, ioredis queues unsent commands until Redis is ready:
 * indefinitely if a whole Cluster is gone, and in growing memory if no sentinel replies or Redis loads for minutes,
 * because callers retry. While a command that has failed is still without a reply, further ones fail at once too.
 */
export function failFast(redis: Redis | Cluster, afterMs: number): void {
  if (redis instanceof Cluster) redis.on('+node', (node: Redis) => queueNoneBehindFailed(node, afterMs));
  else queueNoneBehindFailed(redis, afterMs);
  let closedSinceMs = Number.POSITIVE_INFINITY;
  /** Why the last attempt to connect failed. */
  let reason: string | undefined;
  redis.on('error', ({ message }: Error) => {
    reason = message;
  });
  redis.on('close', () => {
    closedSinceMs = Math.min(closedSinceMs, performance.now());
  });
  redis.on('ready', () => {
    closedSinceMs = Number.POSITIVE_INFINITY;
    reason = undefined;
  });
  const send = redis.sendCommand.bind(redis) as (command: Command, ...more: unknown[]) => unknown;
  redis.sendCommand = (command: Command, ...more: unknown[]) => {
    const isConnected = redis.status === 'connect';
    const isOwn = isConnected && OWN_COMMANDS.has(command.name);
    if (!isOwn && performance.now() - closedSinceMs > afterMs) {
      const closed = reason === undefined ? 'Connection is closed.' : `Connection is closed: ${reason}`;
      return refuse(command, isConnected ? 'Redis is not ready: it loads its data, or does not reply.' : closed);
    }
    command.setTimeout(afterMs);
    return send(command, ...more);
  };
}

/**
 * Fails commands at once while an earlier one on the same connection has failed and its reply is still to come. They
 * would wait behind it, in growing memory if Redis, its disk or the network takes less than callers send; and Redis
 * would go on with commands that nobody waits for long after it could keep up again.
 */
function queueNoneBehindFailed(redis: Redis, afterMs: number): void {
  const send = redis.sendCommand.bind(redis);
  const hasFailed = (command: object) => 'isSettled' in command && command.isSettled === true;
  redis.sendCommand = (command: Command, stream) => {
    // A pipeline is sent as a whole, or replies would be taken for those of other commands.
    if (stream) return send(command, stream);
    // After a reconnect ioredis sends again what had no reply, failed commands too.
    if (hasFailed(command)) return command.promise;
    // Redis replies in order, so the first one has waited longest.
    const first = redis.commandQueue.peekFront()?.command;
    if (first && hasFailed(first)) return refuse(command, 'Redis has not replied to an earlier command in time.');
    // A command to one server of a Cluster has no time limit yet.
    command.setTimeout(afterMs);
    return send(command);
  };
}

/** Fails a command without sending it. Unless it was sent before, it is certain that it was not applied. */
function refuse(command: SentCommand, message: string): Promise<unknown> {
  command.reject(new StorageUnavailable(message, undefined, { isRefusal: !command.wasSent }));
  return command.promise;
}
