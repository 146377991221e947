/** Tells errors of a Redis that is unavailable from errors of the program. */

/** Replies of Redis to a command that is itself wrong. Every other error reply is about the server's state, which passes. */
const WRONG_COMMAND = /^-?(ERR (?!max number of clients)|WRONGTYPE|CROSSSLOT)/;
/** Messages of the Redis client when it gives up on a command: it has no error classes for most of them. */
const CLIENT_GAVE_UP =
  /^(Connection is closed|Command aborted due to connection close|Stream isn't writeable|Command timed out|Socket timeout|All sentinels|None of startup nodes|Node is disconnected|Cluster is (disconnect|ended)|Cluster isn't ready|Too many Cluster redirections|Unknown RESP type)/;
const NETWORK_CODES = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ETIMEDOUT',
  'EPIPE',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
]);

/**
 * Returns whether an error means that Redis is unreachable, full, or takes no writes at the moment. The command that failed may
 * still have been applied.
 */
export function isStorageFailure(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  switch (error.name) {
    case 'ReplyError':
      return !WRONG_COMMAND.test(error.message);
    case 'MaxRetriesPerRequestError':
    case 'ClusterAllFailedError':
      return true;
    default: {
      const { code } = error as NodeJS.ErrnoException;
      return CLIENT_GAVE_UP.test(error.message) || (code !== undefined && NETWORK_CODES.has(code));
    }
  }
}
