/** Builds a worker process from its settings. */
import { randomUUID } from 'node:crypto';
import { StorageUnavailable } from '@posthorn/core';
import { installationIn } from '@posthorn/dispatch';
import { serveApi } from '@posthorn/http';
import { type ConsumerTimings, createJobQueues, isJobGone } from '@posthorn/queue';
import {
  type App,
  boundedLog,
  type Clock,
  createLogger,
  createMetrics,
  createTracing,
  exitAtOnce,
  onlyAtStart,
  registerInstallation,
  type Service,
  stopWithoutRedis,
  systemClock,
  version,
  warnOfPrivateNetworks,
} from '@posthorn/runtime';
import { createSecretBox, type SecretBox } from '@posthorn/signing';
import { checkAnyPartition, checkSecrets, connectRedis, openStore } from '@posthorn/store';
import type { AttemptContext } from './attempts/attempt-delivery.ts';
import { createAttempts } from './attempts/attempts.ts';
import { createEventBodies, createForgetting } from './attempts/event-bodies.ts';
import { attemptedLine } from './attempts/report-attempt.ts';
import { createRequestSigner } from './attempts/sign-request.ts';
import { createSucceededEvents } from './attempts/succeeded-events.ts';
import { createUnreadableSecrets } from './attempts/unreadable-secrets.ts';
import type { WorkerSettings } from './config.ts';
import { createAttemptCounts } from './counts.ts';
import { createHeartbeat } from './heartbeat.ts';
import { createMaintenance } from './maintenance/maintenance.ts';
import { createWorkerMetrics } from './metrics.ts';
import { createNoticeService } from './notices.ts';
import { createOutbound } from './outbound.ts';
import { createReports } from './reports.ts';
import { createResealing } from './reseal-secrets.ts';
import { Slots } from './slots/slots.ts';
import { createTail } from './tail.ts';

/**
 * How soon this worker takes over the work of dead processes. Production uses the defaults; tests use shorter times.
 */
interface WorkerTimings extends ConsumerTimings {
  /** A delivery older than this that has no job gets one. */
  jobExpectedAfterMs: number;
}

/** Builds the worker. It connects to nothing before its services start. */
export function buildWorker(
  settings: WorkerSettings,
  clock: Clock = systemClock,
  timings: Partial<WorkerTimings> = {},
): App {
  const workerId = randomUUID();
  const base = buildBase(settings, clock, workerId);
  const { logger, storage, store, registry } = base;
  const secretBox = createSecretBox(settings.SECRET_ENCRYPTION_KEY);
  const giveUp = new AbortController();
  const outbound = createOutbound({
    ...base,
    settings,
    giveUp: giveUp.signal,
    setPaused: (isPaused) => attempts.setPaused(isPaused),
  });
  const context = attemptContext(settings, { ...base, ...outbound, giveUp: giveUp.signal }, secretBox);
  const attempts = createAttempts({
    context,
    redis: base.queueRedis,
    partitionPrefixes: storage.partitionPrefixes,
    concurrency: settings.WORKER_CONCURRENCY,
    timings,
    giveUp: () => giveUp.abort(),
  });
  const maintenance = createMaintenance({
    ...base,
    secretBox,
    holder: workerId,
    releasePerSecond: settings.RELEASE_RATE,
    rollbackWindowMs: settings.ROLLBACK_WINDOW,
    jobExpectedAfterMs: timings.jobExpectedAfterMs,
  });
  const background = [
    createHeartbeat({ ...base, ...outbound, workerId, settings }),
    createReports({ ...base, ...outbound }),
    createNoticeService({
      ...base,
      holder: workerId,
      to: outbound.noticesTo,
      isCutOff: () => outbound.outages.current() !== undefined,
    }),
    ...maintenance,
    // With one key only, that key has sealed all secrets.
    ...(settings.SECRET_ENCRYPTION_KEY.length > 1 ? [createResealing({ store, secretBox, logger })] : []),
    createForgetting(context.eventBodies, logger),
    outbound.outageChecks,
    base.tail,
  ];
  return {
    http: serveApi({ settings, registry, checkReady: storage.checkReady, logger }),
    services: [
      ...(base.tracing ? [base.tracing] : []),
      storage,
      closeAtStop(() => {
        outbound.close();
        base.queueRedis.disconnect();
      }),
      onlyAtStart('encryption keys', () => checkSecrets(store, secretBox.opens)),
      ...stopWithoutRedis(() => checkAnyPartition(store), background, logger),
      attempts,
    ],
    logger,
    graceMs: settings.SHUTDOWN_GRACE,
  };
}

/** Builds what all parts of the worker share: log, metrics, and the connections to Redis. */
function buildBase(settings: WorkerSettings, clock: Clock, workerId: string) {
  const logger = createLogger({ app: 'worker', level: settings.LOG_LEVEL });
  warnOfPrivateNetworks(settings, logger);
  const registry = createMetrics('worker');
  const tracing = createTracing({ app: 'worker', settings, logger, registry });
  const storage = openStore(settings, {
    onError: (err) => logger.warn({ err }, 'redis.failed'),
    onWarning: (text) => logger.warn(text),
    onRecovery: (text) => logger.info(text),
    identity: { id: workerId, app: 'worker', version },
    onMismatch: (error) => exitAtOnce(logger, error),
  });
  const { store, partitionPrefixes, onError } = storage;
  const queueRedis = connectRedis(settings);
  queueRedis.on('error', onError);
  const jobQueues = createJobQueues({ redis: queueRedis, partitionPrefixes, onError });
  registerInstallation(registry, installationIn(storage, jobQueues, clock.now), logger);
  const metrics = createWorkerMetrics(registry);
  const counts = createAttemptCounts(store, clock);
  const succeededEvents = createSucceededEvents(store, clock);
  const tail = createTail(store, logger);
  const counting = { metrics, counts, succeededEvents, tail };
  return { clock, logger, tracing, storage, store, onError, queueRedis, jobQueues, registry, ...counting };
}

function attemptContext(
  settings: WorkerSettings,
  parts: ReturnType<typeof buildBase> & Pick<AttemptContext, 'sender' | 'outages' | 'giveUp'>,
  secretBox: SecretBox,
): AttemptContext {
  const { storage, logger } = parts;
  const logFailed = boundedLog((fields) => logger.error(fields, 'queue.failed'));
  // After an outage of Redis, each job that was in flight may be one.
  const logGone = boundedLog((fields) => logger.warn(fields, 'job.gone'));
  return {
    ...parts,
    onError(err) {
      // While Redis is unavailable, `parts.onError` reports all its errors once.
      if (!storage.isOpen() || err instanceof StorageUnavailable) parts.onError(err);
      else if (isJobGone(err)) logGone({ reason: err.message });
      else logFailed({ err });
    },
    logAttempted: attemptedLine(parts.logger),
    signRequest: createRequestSigner(secretBox),
    unreadableSecrets: createUnreadableSecrets(parts.clock, logger),
    eventBodies: createEventBodies(parts.store),
    slots: new Slots({
      total: settings.WORKER_CONCURRENCY,
      perAddress: settings.ADDRESS_CONCURRENCY,
      perHost: settings.HOST_CONCURRENCY ?? settings.ADDRESS_CONCURRENCY,
      now: () => performance.now(),
    }),
    retryDelaysMs: settings.RETRY_DELAYS,
    limits: { pauseAfter: settings.PAUSE_AFTER, maxAttempts: settings.RETRY_DELAYS.length + 1 },
    excerptBytes: settings.RESPONSE_EXCERPT_BYTES,
    sendsTraceparent: settings.SEND_TRACEPARENT === 'on',
  };
}

/** Closes connections once the services that use them have stopped. */
function closeAtStop(close: () => void): Service {
  return { name: 'connections', start: async () => undefined, stop: async () => close() };
}
