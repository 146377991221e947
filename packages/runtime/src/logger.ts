/** Logs JSON lines to stdout, with secrets redacted. */
import type { Writable } from 'node:stream';
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

/**
 * Characters that may wait for the reader of the log. Further lines are dropped: a reader that stands still must not
 * fill the memory.
 */
const MAX_UNREAD = 16 * 1024 * 1024;

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
    options.destination ?? stdout(options.app),
  );
}

let shared: DestinationStream | undefined;

/**
 * Returns the process's destination. It joins the lines of one turn of the event loop into one write to Node's stdout:
 * a write for each line would take half as long as all work of ingest or a worker for it. An exit writes what is left;
 * SIGKILL loses the lines of the last turn. Pino's own destination is faster, but blocks the process for ever if the
 * reader of the log is gone, and the process must still be able to work and to stop.
 */
function stdout(app: string): DestinationStream {
  if (shared) return shared;
  if (process.stdout.listenerCount('error') === 0) process.stdout.on('error', () => undefined);
  const { flush, ...destination } = joinLines(process.stdout, app);
  process.once('exit', flush);
  shared = destination;
  return destination;
}

/**
 * Joins the lines of one turn of the event loop into one write to `stream`. While `MAX_UNREAD` waits in it, lines are
 * dropped; the next ones then say how many were.
 */
export function joinLines(stream: Writable, app: string): DestinationStream & { flush(): void } {
  let lines = '';
  let count = 0;
  let dropped = 0;
  const flush = () => {
    if (stream.writableLength > MAX_UNREAD) dropped += count;
    else if (count > 0) {
      if (dropped > 0) {
        const fields = { level: 'warn', time: isoInstant(Date.now()), app, pid: process.pid, lines: dropped };
        lines = `${JSON.stringify({ ...fields, msg: 'log.lines_dropped' })}\n${lines}`;
        dropped = 0;
      }
      stream.write(lines);
    }
    lines = '';
    count = 0;
  };
  return {
    write(line) {
      if (count === 0) setImmediate(flush);
      count += 1;
      lines += line;
    },
    flush,
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

/**
 * Returns the fields of an error to log. An error's command or request may hold a body or a secret, so it is left out.
 */
function describeError(error: unknown): unknown {
  if (!(error instanceof Error)) return { message: String(error) };
  const { code, cause } = error as Error & { code?: unknown };
  return {
    type: error.name,
    message: error.message,
    ...(code === undefined ? {} : { code }),
    stack: error.stack,
    ...(cause === undefined ? {} : { cause: describeError(cause) }),
    ...(error instanceof AggregateError ? { errors: error.errors.map(describeError) } : {}),
  };
}
