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
  refuseCommands(redis, afterMs, ({ name }) => {
    const isConnected = redis.status === 'connect';
    const isOwn = isConnected && OWN_COMMANDS.has(name);
    if (isOwn || performance.now() - closedSinceMs <= afterMs) return undefined;
    if (isConnected) return 'Redis is not ready: it loads its data, or does not reply.';
    return reason === undefined ? 'Connection is closed.' : `Connection is closed: ${reason}`;
  });
}

/**
 * Fails commands at once while an earlier one on the same connection has failed and its reply is still to come. They
 * would wait behind it, in growing memory if Redis, its disk or the network takes less than callers send; and Redis
 * would go on with commands that nobody waits for long after it could keep up again.
 */
function queueNoneBehindFailed(redis: Redis, afterMs: number): void {
  refuseCommands(redis, afterMs, (command) => {
    // Redis replies in order, so the first one has waited longest.
    const first = redis.commandQueue.peekFront()?.command as Command | undefined;
    // After a reconnect ioredis sends again what had no reply, failed commands too.
    const isRefused = hasFailed(command) || (first !== undefined && hasFailed(first));
    return isRefused ? 'Redis has not replied to an earlier command in time.' : undefined;
  });
}

type LimitedCommand = SentCommand & { endsAtMs?: number };

/** Of the commands of a transaction that has failed, the client of a Cluster makes the promises anew. */
function hasFailed({ isSettled, endsAtMs = Number.POSITIVE_INFINITY }: LimitedCommand): boolean {
  return isSettled || performance.now() >= endsAtMs;
}

/**
 * Fails commands for which `refusalOf` returns a message, without sending them, and others after `afterMs`. A pipeline
 * is sent as a whole or not at all, or replies would be taken for those of other commands.
 */
function refuseCommands(
  redis: Redis | Cluster,
  afterMs: number,
  refusalOf: (command: Command) => string | undefined,
): void {
  const send = redis.sendCommand.bind(redis) as (command: Command, ...more: unknown[]) => unknown;
  let ofPipeline: string | undefined;
  redis.sendCommand = (command: LimitedCommand, stream?: unknown, ...more: unknown[]) => {
    if (command.pipelineIndex === 0) ofPipeline = refusalOf(command);
    const refusal = stream ? ofPipeline : refusalOf(command);
    if (refusal !== undefined) {
      // Unless it was sent before, over an earlier connection, it was not applied.
      command.reject(new StorageUnavailable(refusal, undefined, { isRefusal: !command.wasSent }));
      return command.promise;
    }
    command.endsAtMs ??= performance.now() + afterMs;
    command.setTimeout(afterMs);
    return send(command, stream, ...more);
  };
}
