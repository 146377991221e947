/** Logs JSON lines to stdout, with secrets redacted. */
import { isoInstant } from '@posthorn/core';
import { type DestinationStream, type Logger, pino } from 'pino';

export type { Logger };

/** Fields that are redacted. The code does not log secrets; this is a second line of defense. */
export const SECRET_NAMES: ReadonlySet<string> = new Set([
  'authorization',
  'cookie',
  'secret',
  'token',
  'key',
  'password',
]);

/** Creates the logger of an app. */
export function createLogger(options: { app: string; level: string; destination?: DestinationStream }): Logger {
  return pino(
    {
      level: options.level,
      base: { app: options.app, pid: process.pid },
      timestamp: () => `,"time":"${isoInstant(Date.now())}"`,
      formatters: { level: (label) => ({ level: label }), log: redactSecrets },
      serializers: { err: describeError },
    },
    options.destination ?? stdout(),
  );
}

let shared: DestinationStream | undefined;

/**
 * Returns the process's destination. It joins the lines of one turn of the event loop into one write to Node's stdout:
 * a write for each would take half as long as all that ingest or a worker does for a line. An exit writes what is left;
 * SIGKILL loses the lines of the last turn. Pino's own destination is faster, but blocks the process for ever if the
 * reader of the log is gone, and the process must still be able to work and to stop.
 */
function stdout(): DestinationStream {
  shared ??= openStdout();
  return shared;
}

function openStdout(): DestinationStream {
  if (process.stdout.listenerCount('error') === 0) process.stdout.on('error', () => undefined);
  let lines = '';
  const flush = () => {
    if (lines !== '') process.stdout.write(lines);
    lines = '';
  };
  process.once('exit', flush);
  return {
    write(line) {
      if (lines === '') setImmediate(flush);
      lines += line;
    },
  };
}

/** Redacts two levels of a line. Pino's own redaction takes as long as signing an attempt. */
function redactSecrets(line: Record<string, unknown>, depth = 0): Record<string, unknown> {
  let redacted = line;
  for (const name in line) {
    const value = line[name];
    const isSecret = SECRET_NAMES.has(name);
    if (!isSecret && (depth === 2 || typeof value !== 'object' || value === null || value instanceof Error)) continue;
    const safe = isSecret ? '[secret]' : redactSecrets(value as Record<string, unknown>, depth + 1);
    if (safe !== value) redacted = { ...redacted, [name]: safe };
  }
  return redacted;
}

/** Returns the fields of an error to log. An error's command or request may hold a body or a secret, so it is left out. */
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
