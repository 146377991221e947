/** JSON lines on stdout, one wide line an event or attempt, secrets struck out. */
import { type DestinationStream, destination, type Logger, pino, stdTimeFunctions } from 'pino';

export type { Logger };

/** Names under which a secret could slip into a log line; the code doesn't log them in the first place. */
const SECRET_NAMES = ['authorization', 'cookie', 'secret', 'token', 'key', 'password'];

/**
 * A logger for one app. Lines are written as soon as the one before is out, many at once under load, and what is left is written
 * at exit.
 */
export function createLogger(options: { app: string; level: string; destination?: DestinationStream }): Logger {
  return pino(
    {
      level: options.level,
      base: { app: options.app, pid: process.pid },
      timestamp: stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      redact: { paths: SECRET_NAMES.flatMap((name) => [name, `*.${name}`, `*.*.${name}`]), censor: '[secret]' },
      serializers: { err: describeError },
    },
    options.destination ?? destination({ fd: 1, sync: false }),
  );
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
