/** Runs a process: starts its services in order, and stops them in reverse on a signal, within a time limit. */
import { flushCompileCache } from 'node:module';
import { setTimeout as wait } from 'node:timers/promises';
import { format } from 'node:util';
import { StartError, StorageUnavailable, withTimeLimit } from '@posthorn/core';
import type { Logger } from './logger.ts';
import { createSeldom } from './seldom.ts';

/** Delay before a start that failed because of Redis is retried. */
const START_RETRY_MS = 500;

/** Extra time after the grace period: for each service that has not stopped, and for all of them together. */
const OVERTIME_MS = 250;
const MAX_OVERTIME_MS = 1_000;

/** npm passes each signal on to its child. For one Ctrl-C, the process gets the terminal's signal and then npm's. */
const REPEAT_MS = 1_000;

/** A part of a process that starts and stops. Both are idempotent. */
export interface Service {
  name: string;
  start(): Promise<void>;
  /** Finishes work in flight if that takes at most `graceMs`, then releases all resources. */
  stop(graceMs: number): Promise<void>;
}

/** A service that only does something when it starts. If that throws `StartError`, the process ends. */
export function onlyAtStart(name: string, start: () => Promise<void>): Service {
  return { name, start, stop: async () => undefined };
}

interface HttpServer extends Service {
  /** Returns fields for the `ready` log line, for example the URL. */
  describe(): Record<string, unknown>;
}

/** An app that is built but not started. */
export interface App<Http extends HttpServer = HttpServer> {
  /**
   * Starts before all services, so that probes and callers get a response while services wait for Redis. Stops before
   * all services.
   */
  http: Http;
  services: Service[];
  logger: Logger;
  /** Time limit for stopping all services. */
  graceMs: number;
}

/**
 * Runs an app until SIGTERM, SIGINT, SIGHUP (its terminal was closed) or the end of its supervisor, then stops it and
 * exits. The exit code is 0 if all work was finished. It is that of the `StartError` if one was thrown; otherwise 1 if
 * the app could not start, had an unexpected error, or did not stop within `graceMs`. A second signal, more than a
 * second after the first, exits at once.
 */
export async function runApp(build: () => App | Promise<App>): Promise<void> {
  let app: App;
  try {
    app = await build();
  } catch (error) {
    const text = error instanceof StartError ? error.message : error instanceof Error ? error.stack : String(error);
    process.stderr.write(`${text}\n`);
    process.exit(exitCodeOf(error));
  }
  const { http, services, logger } = app;
  // What libraries say there, such as ioredis if its user may not run INFO, belongs into the log. Of an error only its
  // stack: BullMQ writes errors there whose command may hold a body.
  const textOf = (part: unknown) => (part instanceof Error ? part.stack : part);
  for (const level of ['warn', 'error'] as const)
    console[level] = (...parts: unknown[]) => logger[level]({ text: format(...parts.map(textOf)) }, 'library.said');
  const started: Service[] = [];
  let stopping = false;
  let stoppingSinceMs = 0;
  const stop = async (why: Record<string, unknown>, exitCode: number) => {
    if (stopping && performance.now() - stoppingSinceMs > REPEAT_MS) process.exit(1);
    if (stopping) return;
    stopping = true;
    stoppingSinceMs = performance.now();
    logger.info(why, 'stopping');
    const clean = await stopServices([...started, http], app.graceMs, logger);
    logger.info({ clean }, 'stopped');
    logger.flush(() => process.exit(clean ? exitCode : 1));
  };
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => void stop({ signal }, 0));
  // The IPC channel closes when the supervisor ends.
  process.on('disconnect', () => void stop({ reason: 'supervisor gone' }, 0));
  for (const event of ['uncaughtException', 'unhandledRejection'] as const) {
    process.on(event, (err: unknown) => {
      logger.fatal({ err }, event);
      if (!stopping) void stop({ reason: event }, 1);
    });
  }
  try {
    await http.start();
    for (const service of services) {
      if (stopping) return;
      started.push(service);
      await startService(service, logger, () => stopping);
    }
    if (!stopping) logger.info(http.describe(), 'ready');
    // Node writes the compile cache when a process exits, so one that is killed would never write it.
    flushCompileCache();
  } catch (err) {
    if (stopping) return;
    if (err instanceof StartError) process.stderr.write(`${err.message}\n`);
    else logger.fatal({ err }, 'process.start_failed');
    await stop({ reason: 'start failed' }, exitCodeOf(err));
  }
}

function exitCodeOf(error: unknown): number {
  return error instanceof StartError ? error.exitCode : 1;
}

/**
 * Ends a process that must not touch the stored data any more, at once, as a crash does. Other processes repeat the
 * work that it had in progress.
 */
export function exitAtOnce(logger: Logger, err: StartError): void {
  logger.fatal({ err }, 'process.must_not_continue');
  logger.flush(() => process.exit(exitCodeOf(err)));
}

/** Starts a service. Retries while Redis is unavailable: it may fail again after storage has opened, or be full. */
async function startService(service: Service, logger: Logger, isStopping: () => boolean): Promise<void> {
  const mayLog = createSeldom();
  while (!isStopping()) {
    try {
      await service.start();
      return;
    } catch (err) {
      if (isStopping() || !(err instanceof StorageUnavailable)) throw err;
      if (mayLog()) logger.warn({ err, service: service.name }, 'service.start_retried');
      await wait(START_RETRY_MS);
    }
  }
}

/**
 * Stops services in reverse order, within `graceMs` in total. Returns whether all stopped in time and without an error.
 */
export async function stopServices(services: readonly Service[], graceMs: number, logger: Logger): Promise<boolean> {
  const endsAtMs = performance.now() + graceMs;
  let clean = true;
  for (const service of [...services].reverse()) {
    const remainsMs = Math.ceil(endsAtMs - performance.now());
    const leftMs = Math.max(0, remainsMs);
    try {
      const limitMs = Math.max(0, Math.min(leftMs + OVERTIME_MS, remainsMs + MAX_OVERTIME_MS));
      await withTimeLimit(limitMs, service.stop(leftMs));
    } catch (err) {
      clean = false;
      logger.error({ err, service: service.name }, 'service.stop_failed');
    }
  }
  return clean;
}
