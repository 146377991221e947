/** Puts a worker process together from its settings. */
import { randomUUID } from 'node:crypto';
import { createConsumer, createProducer } from '@posthorn/queue';
import {
  type App,
  type Clock,
  createExpress,
  createHttpService,
  createLogger,
  createMetrics,
  createRepeating,
  notFoundHandler,
  operationsRouter,
  problemHandler,
  registerBacklog,
  type Service,
  systemClock,
  version,
} from '@posthorn/runtime';
import { createSender } from '@posthorn/sender';
import { createSecretBox } from '@posthorn/signing';
import {
  allPartitions,
  announceMaxAttempts,
  checkWritable,
  connectRedis,
  giveUpLease,
  openStore,
  readBacklog,
} from '@posthorn/store';
import { createAddressPlaces } from './address-places.ts';
import type { AttemptContext } from './attempt-delivery.ts';
import type { WorkerSettings } from './config.ts';
import { createEventBodies } from './event-bodies.ts';
import { handleJob } from './handle-job.ts';
import { createHousekeeper, ROUND_EVERY_MS } from './housekeeping.ts';
import { createWorkerMetrics } from './metrics.ts';
import { createRequestSigner } from './sign-request.ts';

/** Builds the worker; nothing is connected to before its services start. */
export function buildWorker(settings: WorkerSettings, clock: Clock = systemClock): App {
  const logger = createLogger({ app: 'worker', level: settings.LOG_LEVEL });
  const onError = (err: Error) => logger.warn({ err }, 'redis.error');
  const storage = openStore(settings, { onError });
  const { store, bases } = storage;
  const queueRedis = connectRedis(settings);
  queueRedis.on('error', onError);
  const producer = createProducer({ redis: queueRedis, bases, onError });
  const giveUp = new AbortController();
  const sender = createSender({
    allowedNetworks: settings.ALLOWED_PRIVATE_NETWORKS,
    timeoutMs: settings.ATTEMPT_TIMEOUT,
    userAgent: `Posthorn/${version}`,
    signal: giveUp.signal,
  });
  const registry = createMetrics('worker');
  registerBacklog(registry, async () => ({
    ...(await readBacklog(store, clock.now())),
    jobs: { ...(await producer.counts()) },
  }));
  const context: AttemptContext = {
    store,
    producer,
    sender,
    signRequest: createRequestSigner(createSecretBox(settings.SECRET_ENCRYPTION_KEY)),
    eventBodies: createEventBodies(store),
    places: createAddressPlaces(settings.ADDRESS_CONCURRENCY),
    metrics: createWorkerMetrics(registry),
    clock,
    logger,
    retryDelaysMs: settings.RETRY_DELAYS,
    pauseAfter: settings.PAUSE_AFTER,
    giveUp: giveUp.signal,
  };
  const consumers = bases.map((base) =>
    createConsumer({
      redis: queueRedis,
      base,
      concurrency: Math.ceil(settings.WORKER_CONCURRENCY / bases.length),
      handle: (job) => handleJob(context, job),
      giveUp: () => giveUp.abort(),
      onError: (err) => logger.error({ err }, 'queue.error'),
    }),
  );
  const app = createExpress();
  app.use(operationsRouter({ registry, checkReady: () => checkWritable(store) }));
  app.use(notFoundHandler, problemHandler(logger));
  const http = createHttpService({ app, host: settings.HOST, port: settings.PORT });
  const holder = randomUUID();
  const housekeeper = createHousekeeper(
    {
      store,
      producer,
      clock,
      logger,
      holder,
      releasePerSecond: settings.RELEASE_RATE,
      addressConcurrency: settings.ADDRESS_CONCURRENCY,
    },
    allPartitions(store),
  );
  const schedule: Service = {
    name: 'schedule',
    start: () => announceMaxAttempts(store, settings.RETRY_DELAYS.length + 1),
    stop: async () => {
      await Promise.all(allPartitions(store).map((partition) => giveUpLease(store, partition, holder)));
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
      queueRedis.disconnect();
    },
  };
  if (settings.ALLOWED_PRIVATE_NETWORKS.length > 0) {
    logger.warn('ALLOWED_PRIVATE_NETWORKS is set: the address guard lets those networks through. Not for production.');
  }
  const keepHouse = createRepeating({
    name: 'housekeeping',
    everyMs: ROUND_EVERY_MS,
    run: () => housekeeper.keepHouse(),
    logger,
  });
  return {
    services: [storage, schedule, queue, keepHouse, attempts, http],
    logger,
    graceMs: settings.SHUTDOWN_GRACE,
    describe: () => ({ url: http.url(), version, partitions: settings.PARTITIONS }),
  };
}
