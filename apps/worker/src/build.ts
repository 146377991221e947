/** Puts a worker process together from its settings. */
import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { StorageUnavailable } from '@posthorn/core';
import { createApi, serveApi } from '@posthorn/http';
import { type ConsumerTimings, createConsumer, createProducer, isJobGone } from '@posthorn/queue';
import {
  type App,
  type Clock,
  createLogger,
  createMetrics,
  createRepeating,
  registerBacklog,
  type Service,
  systemClock,
  version,
} from '@posthorn/runtime';
import { createOneOffSender, createProbe, createResolver, createSender } from '@posthorn/sender';
import { createSecretBox } from '@posthorn/signing';
import {
  allPartitions,
  announceRules,
  connectRedis,
  deregisterWorker,
  giveUpLease,
  loadReachedSites,
  openStore,
  readBacklog,
  saveReachedSites,
  sendHeartbeat,
  type WorkerState,
} from '@posthorn/store';
import type { AttemptContext } from './attempt-delivery.ts';
import { NOTICE_NETWORKS, type WorkerSettings } from './config.ts';
import { createAttemptCounts, TELL_EVERY_MS } from './counts.ts';
import { createEventBodies } from './event-bodies.ts';
import { handleJob } from './handle-job.ts';
import { createHousekeeper, ROUND_EVERY_MS } from './housekeeping.ts';
import { createWorkerMetrics } from './metrics.ts';
import { createNotifier, NOTICES_EVERY_MS } from './notices.ts';
import { createOutages } from './outage.ts';
import { createOutageReports } from './outage-reports.ts';
import { createReachedSites } from './reached-sites.ts';
import { RESEAL_EVERY_MS, resealSecrets } from './reseal-secrets.ts';
import { createRequestSigner } from './sign-request.ts';
import { createSlots } from './slots.ts';

/** Detection within 10 seconds: an attempt that gets nowhere fails after 8 seconds at most, then its probes. */
const PROBE_TIMEOUT_MS = 1_500;
const OUTAGE_CHECK_EVERY_MS = 1_000;

/** How soon this worker takes over what a dead process has left. The defaults are for production; tests have no time for them. */
export interface WorkerTimings extends ConsumerTimings {
  /** A delivery this old without a job gets one. */
  jobExpectedAfterMs: number;
}

/** Builds the worker; nothing is connected to before its services start. */
export function buildWorker(
  settings: WorkerSettings,
  clock: Clock = systemClock,
  timings: Partial<WorkerTimings> = {},
): App {
  const logger = createLogger({ app: 'worker', level: settings.LOG_LEVEL });
  const storage = openStore(settings, {
    onError: (err) => logger.warn({ err }, 'redis.error'),
    onWarning: (text) => logger.warn(text),
  });
  const { store, partitionPrefixes, onError } = storage;
  const queueRedis = connectRedis(settings);
  queueRedis.on('error', onError);
  const producer = createProducer({ redis: queueRedis, partitionPrefixes, onError });
  const giveUp = new AbortController();
  const sending = {
    timeoutMs: settings.ATTEMPT_TIMEOUT,
    userAgent: `Posthorn/${version}`,
    resolve: createResolver({
      servers: settings.DNS_SERVERS,
      attemptTimeoutMs: settings.ATTEMPT_TIMEOUT,
      onResolved: (hostname) => outages.resolved(hostname),
    }),
    signal: giveUp.signal,
  };
  const reaching = {
    resolve: sending.resolve,
    allowedNetworks: settings.ALLOWED_PRIVATE_NETWORKS,
    onConnected: (origin: string, ip: string) => outages.connected(origin, ip),
  };
  const sender = createSender({ ...sending, ...reaching });
  const noticeSender =
    settings.NOTICE_URL === undefined
      ? undefined
      : createOneOffSender({ ...sending, allowedNetworks: NOTICE_NETWORKS });
  const registry = createMetrics('worker');
  registerBacklog(registry, async () => ({
    ...(await readBacklog(store, clock.now())),
    jobs: { ...(await producer.counts()) },
  }));
  const metrics = createWorkerMetrics(registry);
  const counts = createAttemptCounts(store, clock);
  const reachedSites = createReachedSites();
  const reports = createOutageReports({
    store,
    logger,
    metrics,
    clock,
    pauseQueue: (isPaused) => Promise.all(consumers.map((one) => (isPaused ? one.pause() : one.resume()))),
    onError,
    giveUp: giveUp.signal,
  });
  const outages = createOutages({
    ...reports,
    sites: reachedSites,
    probe: createProbe({ ...reaching, timeoutMs: PROBE_TIMEOUT_MS }),
    inFlight: () => counts.inFlight,
    now: () => clock.now(),
    elapsedMs: () => performance.now(),
  });
  const secretBox = createSecretBox(settings.SECRET_ENCRYPTION_KEY);
  const context: AttemptContext = {
    store,
    producer,
    sender,
    signRequest: createRequestSigner(secretBox),
    eventBodies: createEventBodies(store),
    slots: createSlots({
      total: settings.WORKER_CONCURRENCY,
      perAddress: settings.ADDRESS_CONCURRENCY,
      perHost: settings.HOST_CONCURRENCY ?? settings.ADDRESS_CONCURRENCY,
      now: () => performance.now(),
    }),
    outages,
    metrics,
    counts,
    clock,
    logger,
    retryDelaysMs: settings.RETRY_DELAYS,
    pauseAfter: settings.PAUSE_AFTER,
    releasePerSecond: settings.RELEASE_RATE,
    giveUp: giveUp.signal,
  };
  const consumers = partitionPrefixes.map((partitionPrefix) =>
    createConsumer({
      redis: queueRedis,
      partitionPrefix,
      concurrency: Math.ceil(settings.WORKER_CONCURRENCY / partitionPrefixes.length),
      handle: (job) => handleJob(context, job),
      giveUp: () => giveUp.abort(),
      timings,
      onError(err) {
        if (!storage.isOpen()) onError(err);
        else logger[isJobGone(err) || err instanceof StorageUnavailable ? 'warn' : 'error']({ err }, 'queue.error');
      },
    }),
  );
  const api = createApi({ title: 'Posthorn worker', version, description: 'Delivers.', security: {} });
  const http = serveApi({
    api,
    settings,
    registry,
    checkReady: storage.checkReady,
    logger,
    addRoutes: (app) => app.use(api.router),
  });
  const holder = randomUUID();
  const housekeeper = createHousekeeper(
    {
      store,
      producer,
      clock,
      logger,
      holder,
      releasePerSecond: settings.RELEASE_RATE,
      jobExpectedAfterMs: timings.jobExpectedAfterMs,
    },
    allPartitions(store),
  );
  const schedule: Service = {
    name: 'schedule',
    start: () =>
      announceRules(store, { maxAttempts: settings.RETRY_DELAYS.length + 1, pauseAfter: settings.PAUSE_AFTER }),
    stop: async () => {
      const duties = ['maintenance', 'notifier'] as const;
      await Promise.all(
        allPartitions(store).flatMap((partition) => duties.map((duty) => giveUpLease(store, duty, partition, holder))),
      );
    },
  };
  const presence = createRepeating({
    name: 'statistics',
    everyMs: TELL_EVERY_MS,
    run: async () => {
      await sendHeartbeat(store, describeSelf(), clock.now());
      await counts.tell();
      await saveReachedSites(store, reachedSites.takeUnsaved(clock.now()), clock.now());
    },
    logger,
  });
  const outageChecks = createRepeating({
    name: 'outage checks',
    everyMs: OUTAGE_CHECK_EVERY_MS,
    run: () => outages.check(),
    logger,
  });
  /** The sites that were reached before this process started tell an outage that goes on. */
  const outageWatch: Service = {
    ...outageChecks,
    async start() {
      reachedSites.load(await loadReachedSites(store));
      await outageChecks.start();
    },
  };
  const startedAtMs = clock.now();
  const describeSelf = (): WorkerState => ({
    id: holder,
    host: hostname(),
    pid: process.pid,
    version,
    startedAtMs,
    concurrency: settings.WORKER_CONCURRENCY,
    inFlight: counts.inFlight,
    outageSinceMs: outages.current()?.startedAtMs ?? null,
  });
  /** Seen from the start; what was counted last is told after the last attempt. */
  const statistics: Service = {
    name: presence.name,
    async start() {
      await sendHeartbeat(store, describeSelf(), clock.now());
      await presence.start();
    },
    async stop(graceMs) {
      await presence.stop(graceMs);
      await counts.tell();
      await deregisterWorker(store, holder);
    },
  };
  const attempts: Service = {
    name: 'attempts',
    async start() {
      await Promise.all(consumers.map((consumer) => consumer.start()));
    },
    async stop(graceMs) {
      const ended = await Promise.all(consumers.map((consumer) => consumer.stop(graceMs)));
      if (ended.includes(false)) logger.error('attempts in flight were left to another worker');
    },
  };
  const queue: Service = {
    name: 'queue',
    start: async () => undefined,
    async stop() {
      sender.close();
      noticeSender?.close();
      queueRedis.disconnect();
    },
  };
  if (settings.ALLOWED_PRIVATE_NETWORKS.length > 0) {
    logger.warn('ALLOWED_PRIVATE_NETWORKS is set: the address guard lets those networks through. Not for production.');
  }
  const notifier = createNotifier(
    {
      store,
      clock,
      logger,
      metrics,
      holder,
      target: noticeSender && {
        url: settings.NOTICE_URL!,
        secret: settings.NOTICE_SECRET!,
        sender: noticeSender,
      },
      isCutOff: () => outages.current() !== undefined,
    },
    allPartitions(store),
  );
  const notices = createRepeating({
    name: 'notices',
    everyMs: NOTICES_EVERY_MS,
    run: () => notifier.giveNotices(),
    logger,
  });
  const keepHouse = createRepeating({
    name: 'housekeeping',
    everyMs: ROUND_EVERY_MS,
    run: () => housekeeper.keepHouse(),
    logger,
  });
  const reseal = createRepeating({
    name: 'reseal secrets',
    everyMs: RESEAL_EVERY_MS,
    run: () => resealSecrets({ store, secretBox, logger }),
    logger,
  });
  // With one key there is no other that could have sealed a secret.
  const resealing = settings.SECRET_ENCRYPTION_KEY.length > 1 ? [reseal] : [];
  return {
    http,
    services: [storage, schedule, queue, statistics, notices, keepHouse, ...resealing, outageWatch, attempts],
    logger,
    graceMs: settings.SHUTDOWN_GRACE,
    describe: () => ({ ...http.urls(), version, partitions: settings.PARTITIONS }),
  };
}
