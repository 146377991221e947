/** The life of a process: services started in order, stopped in reverse, on a signal and within a time limit. */
import { setTimeout as wait } from 'node:timers/promises';
import { StartError } from '@posthorn/core';
import type { Logger } from './logger.ts';
import { SettingsError } from './settings.ts';
import { isStorageFailure } from './storage-failure.ts';

/** Between two tries to start a service that Redis did not answer. */
const START_RETRY_MS = 500;

/** Something with a life. `start` and `stop` may be called more than once. */
export interface Service {
  name: string;
  start(): Promise<void>;
  /** Ends what is in flight, if it can within `graceMs`, and lets go of everything. */
  stop(graceMs: number): Promise<void>;
}

/** An app as `main.ts` has built it. */
export interface App<Http extends Service = Service> {
  /** Starts before the services, so that probes and callers get an answer while those wait for Redis; stops before any of them. */
  http: Http;
  services: Service[];
  logger: Logger;
  /** Time for everything to stop. */
  graceMs: number;
  /** Said in the `ready` line, for example where it listens. */
  describe?: () => Record<string, unknown>;
}

/**
 * Runs an app until SIGTERM, SIGINT or the end of the supervisor that it was started from, then stops it and exits:
 * 0 where all was finished, 1 where it could not start, broke, or did not finish within its grace. A second signal exits at once.
 */
export async function runApp(build: () => App | Promise<App>): Promise<void> {
  let app: App;
  try {
    app = await build();
  } catch (error) {
    exitWithMessage(error);
    return;
  }
  const { http, services, logger } = app;
  const started: Service[] = [];
  let stopping = false;
  const stop = async (why: Record<string, unknown>, exitCode: number) => {
    if (stopping) process.exit(1);
    stopping = true;
    logger.info(why, 'stopping');
    const clean = await stopServices([...started, http], app.graceMs, logger);
    logger.info({ clean }, 'stopped');
    logger.flush(() => process.exit(clean ? exitCode : 1));
  };
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => void stop({ signal }, 0));
  // Started by a supervisor over an IPC channel: its end is this one's.
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
    if (!stopping) logger.info(app.describe?.() ?? {}, 'ready');
  } catch (err) {
    if (stopping) return;
    if (err instanceof StartError) process.stderr.write(`${err.message}\n`);
    else logger.fatal({ err }, 'start_failed');
    await stop({ reason: 'start failed' }, 1);
  }
}

/** Starts a service. Redis may go away again while services start: that is waited for, as everywhere else. */
async function startService(service: Service, logger: Logger, isStopping: () => boolean): Promise<void> {
  while (!isStopping()) {
    try {
      await service.start();
      return;
    } catch (err) {
      if (isStopping() || !isStorageFailure(err)) throw err;
      logger.warn({ err, service: service.name }, 'start_repeated');
      await wait(START_RETRY_MS);
    }
  }
}

/** Stops services in reverse order within `graceMs` in all; answers whether all did in time. */
export async function stopServices(services: readonly Service[], graceMs: number, logger: Logger): Promise<boolean> {
  const endsAtMs = Date.now() + graceMs;
  let clean = true;
  for (const service of [...services].reverse()) {
    const leftMs = Math.max(0, endsAtMs - Date.now());
    const timeUp = Promise.withResolvers<'time up'>();
    const timer = setTimeout(() => timeUp.resolve('time up'), leftMs + 250);
    try {
      if ((await Promise.race([service.stop(leftMs), timeUp.promise])) === 'time up') {
        clean = false;
        logger.error({ service: service.name }, 'did not stop in time');
      }
    } catch (err) {
      clean = false;
      logger.error({ err, service: service.name }, 'stop_failed');
    } finally {
      clearTimeout(timer);
    }
  }
  return clean;
}

function exitWithMessage(error: unknown): void {
  const known = error instanceof SettingsError || error instanceof StartError;
  process.stderr.write(`${known ? error.message : error instanceof Error ? error.stack : String(error)}\n`);
  process.exit(1);
}
