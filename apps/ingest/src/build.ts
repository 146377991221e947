/** Builds an ingest process from its settings. */
import { randomUUID } from 'node:crypto';
import { installationIn, openStorage } from '@posthorn/dispatch';
import {
  type ApiService,
  createApi,
  createAuthFailures,
  docsRouter,
  limitPerSecond,
  requireBearer,
  requireStorage,
  serveApi,
  webhooks,
} from '@posthorn/http';
import {
  type App,
  type Clock,
  createLogger,
  createMetrics,
  createRepeating,
  createTracing,
  exitAtOnce,
  registerInstallation,
  stopWithoutRedis,
  systemClock,
  version,
  warnOfShortKeys,
} from '@posthorn/runtime';
import { announceSearch, checkAnyPartition, createMatcher, createReplicaWait, finishFanOuts } from '@posthorn/store';
import type { Registry } from 'prom-client';
import type { IngestSettings } from './config.ts';
import { EventTurns } from './event-turns.ts';
import { InFlight } from './in-flight.ts';
import { createEventCounts, measureRequests } from './metrics.ts';
import { createPublisherQuota } from './publisher-quota.ts';
import { type PublisherContext, publisherRoutes } from './routes.ts';
import { createSandboxFeed } from './sandbox-feed.ts';

const SWEEP_EVERY_MS = 5_000;
const ANNOUNCE_EVERY_MS = 60_000;
/** What receivers are advised to read at most (docs/receivers.md). */
const ADVISED_MAX_BODY_BYTES = 1024 * 1024;

/** Builds ingest. It connects to nothing before its services start. */
export function buildIngest(settings: IngestSettings, clock: Clock = systemClock): App<ApiService> {
  const logger = createLogger({ app: 'ingest', level: settings.LOG_LEVEL });
  warnOfShortKeys('PUBLISHER_KEYS', settings.PUBLISHER_KEYS, logger);
  if (settings.MAX_EVENT_BYTES > ADVISED_MAX_BODY_BYTES) {
    logger.warn(
      `MAX_EVENT_BYTES is more than ${ADVISED_MAX_BODY_BYTES}: receivers that read no more than that, as advised, refuse larger events with 413.`,
    );
  }
  const registry = createMetrics('ingest');
  const tracing = createTracing({ app: 'ingest', settings, logger, registry });
  const { storage, store, jobQueues } = openStorage(settings, logger, {
    identity: { id: randomUUID(), app: 'ingest', version },
    onMismatch: (error) => exitAtOnce(logger, error),
  });
  registerInstallation(registry, installationIn(storage, jobQueues, clock.now), logger);
  const publishers = [...new Set(settings.PUBLISHER_KEYS.map(({ name }) => name))];
  const quota = createPublisherQuota({
    store,
    quota: settings.PUBLISHER_QUOTA,
    publishers,
    registry,
    clock,
    logger,
  });
  const sandboxFeed = createSandboxFeed(store, logger);
  const countEvents = createEventCounts(registry, publishers);
  const context = publisherContext(settings, { store, quota, countEvents, sandboxFeed, tracing, clock, logger });
  const http = buildHttp(settings, context, registry, storage);
  const sweep = createRepeating({
    name: 'fan-out sweep',
    everyMs: SWEEP_EVERY_MS,
    run: (stopping) => finishFanOuts(context, stopping),
    logger,
  });
  const announce = () => announceSearch(store, context.isSearchOn);
  const announcement = createRepeating({
    name: 'event search',
    everyMs: ANNOUNCE_EVERY_MS,
    run: announce,
    onStart: announce,
    logger,
  });
  return {
    http,
    services: [
      ...(tracing ? [tracing] : []),
      storage,
      ...stopWithoutRedis(() => checkAnyPartition(store), [sweep, quota.service, sandboxFeed, announcement], logger),
    ],
    logger,
    graceMs: settings.SHUTDOWN_GRACE,
  };
}

function publisherContext(
  settings: IngestSettings,
  parts: Pick<PublisherContext, 'store' | 'quota' | 'countEvents' | 'sandboxFeed' | 'tracing' | 'clock' | 'logger'>,
): PublisherContext {
  const { store } = parts;
  return {
    ...parts,
    matcher: createMatcher(store),
    turns: new EventTurns(),
    inFlight: new InFlight(),
    maxEventBytes: settings.MAX_EVENT_BYTES,
    isSearchOn: settings.EVENT_SEARCH === 'on',
    replicaWait: settings.ACK_REPLICAS > 0 ? createReplicaWait(store, settings.ACK_REPLICAS) : undefined,
    rateLimit: limitPerSecond({
      redis: store.redis,
      keyPrefix: `${settings.KEY_PREFIX}:limit:publisher`,
      perSecond: settings.PUBLISHER_RATE_LIMIT,
      message: `This publisher may publish ${settings.PUBLISHER_RATE_LIMIT} events a second (PUBLISHER_RATE_LIMIT).`,
    }),
  };
}

function buildHttp(
  settings: IngestSettings,
  context: PublisherContext,
  registry: Registry,
  { isOpen, checkReady }: ReturnType<typeof openStorage>['storage'],
): ApiService {
  const { logger } = context;
  const authenticate = requireBearer(settings.PUBLISHER_KEYS, createAuthFailures({ registry, logger }));
  const api = createApi({
    title: 'Posthorn publisher API',
    description: 'Accepts events and delivers each to every matching subscription.',
    security: { key: { type: 'http', scheme: 'bearer', description: 'A publisher key' } },
    guards: [authenticate, requireStorage(isOpen)],
    webhooks: webhooks(),
  });
  publisherRoutes(api, context);
  return serveApi({
    api,
    settings,
    registry,
    checkReady,
    logger,
    before: [measureRequests(registry)],
    addRoutes(app) {
      app.use(docsRouter(api));
      app.use('/v1', authenticate);
    },
  });
}
