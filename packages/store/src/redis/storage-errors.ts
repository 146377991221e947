/** Gives the errors of the Redis client a type: `StorageUnavailable` where Redis is unavailable, as opposed to bugs. */
import { StorageUnavailable } from '@posthorn/core';
import { Cluster, type Command, Redis } from 'ioredis';

/**
 * Replies of Redis to a command that is itself wrong. Every other error reply is about the server's state, which
 * passes.
 */
const WRONG_COMMAND =
  /^-?(ERR (?!max number of clients|The user executing the script can't run|ACL failure in script)|WRONGTYPE|CROSSSLOT)/;
/** Messages of the Redis client when it gives up on a command: it has no error classes for most of them. */
const CLIENT_GAVE_UP =
  /^(Connection is closed|Command aborted due to connection close|Stream isn't writeable|Command timed out|Socket timeout|All sentinels|None of startup nodes|Node is disconnected|Cluster is (disconnect|ended)|Cluster isn't ready|Too many Cluster redirections|Unknown RESP type)/;
/** Codes of connections that fail or end, also because this process or its machine has no more sockets. */
const NETWORK_CODES =
  /^(ECONNREFUSED|ECONNRESET|ECONNABORTED|ETIMEDOUT|EPIPE|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|ENETDOWN|EADDRNOTAVAIL|EMFILE|ENFILE|ENOBUFS)$/;

/**
 * Replies by which Redis refuses a command, or a script at its first write: nothing was changed. A right that the user
 * lacks for a command in a script is none of them, since that may come after a write.
 */
const REFUSED = /^-?(READONLY|OOM|MISCONF|NOREPLICAS|CLUSTERDOWN|MASTERDOWN|LOADING|BUSY|TRYAGAIN|NOAUTH) /;

/**
 * `StorageUnavailable` for an error which means that; any other error as it is. `wasSentBefore`: the command was also
 * sent over an earlier connection, and may have been applied then.
 */
export function typedError<E extends Error | null | undefined>(
  error: E,
  wasSentBefore = false,
): E | StorageUnavailable {
  if (!error || !isUnavailable(error)) return error;
  const isRefusal = !wasSentBefore && error.name === 'ReplyError' && REFUSED.test(error.message);
  return new StorageUnavailable(messageOf(error), error, { isRefusal });
}

/** A command with a mark that it was sent. A property, since a set of all commands would cost each of them more. */
export type SentCommand = Command & { wasSent?: boolean };

/**
 * The error of a script that was sent before, over a connection that broke, and that Redis does not know any more.
 * ioredis would send it once more, as a new command: if Redis refused that one, it would seem that nothing was changed,
 * although the first one may have been applied.
 */
const unknownOutcome = (cause: Error) => new StorageUnavailable('The connection to Redis broke', cause);

/** Adds the key to the error of a key of another type, which does not say it. Scripts have several. */
function nameKey<E extends Error | null | undefined>(error: E, { name, args }: Command): E {
  if (error?.message.startsWith('WRONGTYPE ') && !name.startsWith('eval')) error.message += ` (${name} ${args[0]})`;
  return error;
}

function messageOf({ message }: Error): string {
  return (
    message
      // Where in a script a command failed says nothing to an operator. The cause has it, for the log. Valkey 9 leaves
      // the hash of the script out.
      .replace(/ script: (\S+, )?on \S+:\d+\.?$/, '')
      .replace(/^Reached the max retries .*$/s, 'The connection to Redis broke, and could not be made again')
      .replace(/^Too many Cluster redirections\. Last error: (Reply)?Error: /, '')
      .replace(/^MOVED (\d+) (\S+)$/, 'No connection to the server of slot $1 ($2)')
      .replace(/^ASK (\d+) (\S+)$/, 'Slot $1 is being moved to $2, and not used until it is there')
  );
}

/** The error of a reply of Redis that a script has caught. */
export function replyError(message: string): Error {
  return typedError(Object.assign(new Error(message), { name: 'ReplyError' }));
}

/** Throws all errors but `StorageUnavailable`: for what may be left undone. */
export function unlessUnavailable(error: unknown): void {
  if (!(error instanceof StorageUnavailable)) throw error;
}

function isUnavailable(error: Error): boolean {
  switch (error.name) {
    case 'ReplyError':
      return !WRONG_COMMAND.test(error.message);
    case 'MaxRetriesPerRequestError':
    case 'ClusterAllFailedError':
      return true;
    case 'StorageUnavailable':
      return false;
    default:
      return CLIENT_GAVE_UP.test(error.message) || NETWORK_CODES.test((error as NodeJS.ErrnoException).code ?? '');
  }
}

/**
 * Types the errors of a connection and of its duplicates (BullMQ makes some): of its commands, of `connect()`, and
 * those it emits.
 */
export function typeErrors<R extends Redis | Cluster>(redis: R): R {
  const { sendCommand, emit, connect, disconnect, duplicate } = redis as Redis;
  const typed: Partial<Redis> = {
    // The client of a Cluster sends commands again by itself.
    sendCommand(command: SentCommand, ...more) {
      const { reject, wasSent = redis instanceof Cluster } = command;
      command.wasSent = true;
      command.reject = (error) => {
        const isUnknown = wasSent && redis instanceof Redis && error?.message.startsWith('NOSCRIPT ');
        reject(isUnknown ? unknownOutcome(error) : typedError(nameKey(error, command), wasSent));
      };
      return sendCommand.call(this, command, ...more);
    },
    emit(event, ...args) {
      return emit.call(this, event, ...(event === 'error' ? args.map((error) => typedError(error)) : args));
    },
    disconnect(reconnect) {
      // Each refusal of a replica asks to reconnect, and would add listeners to a connection that is closing already.
      const isClosing = this.status === 'ready' && this.stream?.writableEnded;
      if (!(reconnect && isClosing)) disconnect.call(this, reconnect);
    },
    connect: (...args) => connect.apply(redis, args).catch((error) => Promise.reject(typedError(error))),
    duplicate: (...args) => typeErrors(duplicate.apply(redis as Redis, args)),
  };
  Object.assign(redis, typed);
  if ('delayUntilReady' in redis) {
    // Commands that a Cluster is given before it knows its servers wait here, and never reach `sendCommand` where it
    // finds none.
    const delay = redis.delayUntilReady.bind(redis);
    redis.delayUntilReady = (callback) => delay((error) => callback(typedError(error)));
    leaveMovingSlots(redis);
  }
  return redis;
}

/**
 * Makes commands fail whose key is not on its server while its slot is being moved. The client would repeat them on the
 * other server. But a script may use all keys of its partition, and until the end of the move some are on one server
 * and some on the other: it would miss those, and make them anew. The first key of our scripts never exists, so none
 * runs during a move. Of the keys that BullMQ's scripts declare some never exist, so Redis refuses them with TRYAGAIN.
 */
function leaveMovingSlots(cluster: Cluster): void {
  const handle = cluster.handleError.bind(cluster);
  cluster.handleError = (error, ttl, handlers: { defaults: () => void }) => {
    if (error.message.startsWith('ASK ')) handlers.defaults();
    else handle(error, ttl, handlers);
  };
}
