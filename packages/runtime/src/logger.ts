/** JSON lines on stdout, one wide line an event or attempt, secrets struck out. */
import { type DestinationStream, type Logger, pino, stdTimeFunctions } from 'pino';

export type { Logger };

/** Names under which a secret could slip into a log line; the code doesn't log them in the first place. */
const SECRET_NAMES = new Set(['authorization', 'cookie', 'secret', 'token', 'key', 'password']);

/** A logger for one app. */
export function createLogger(options: { app: string; level: string; destination?: DestinationStream }): Logger {
  return pino(
    {
      level: options.level,
      base: { app: options.app, pid: process.pid },
      timestamp: stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }), log: strikeSecrets },
      serializers: { err: describeError },
    },
    options.destination ?? stdout(),
  );
}

/**
 * Node's own stdout, not pino's faster one: that waits for ever, blocking the process, where nobody reads the log any more, and a
 * process must still be able to work and to stop then.
 */
function stdout(): DestinationStream {
  if (process.stdout.listenerCount('error') === 0) process.stdout.on('error', () => undefined);
  return process.stdout;
}

/** pino's own redaction costs an attempt as much as its signature; this looks two levels deep, where a line has any. */
function strikeSecrets(line: Record<string, unknown>, depth = 0): Record<string, unknown> {
  let struck = line;
  for (const name in line) {
    const value = line[name];
    const isSecret = SECRET_NAMES.has(name);
    if (!isSecret && (depth === 2 || typeof value !== 'object' || value === null || value instanceof Error)) continue;
    const safe = isSecret ? '[secret]' : strikeSecrets(value as Record<string, unknown>, depth + 1);
    if (safe !== value) struck = { ...struck, [name]: safe };
  }
  return struck;
}

/** What of an error goes into the log: never the command or request it carries, which may hold a body or a secret. */
function describeError(error: unknown): unknown {
  if (!(error instanceof Error)) return { message: String(error) };
  const { code, cause } = error as Error & { code?: unknown };
  return {
    type: error.name,
    message: error.message,
    ...(code === undefined ? {} : { code }),
    stack: error.stack,
    ...(cause === undefined ? {} : { cause: describeError(cause) }),
  };
}
