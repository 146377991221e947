/** Puts a console process together from its settings. */
import { createProducer } from '@posthorn/queue';
import {
  type App,
  type Clock,
  createExpress,
  createHttpService,
  createLogger,
  createMetrics,
  notFoundHandler,
  operationsRouter,
  problemHandler,
  registerBacklog,
  requireBearer,
  systemClock,
  version,
} from '@posthorn/runtime';
import { createSecretBox } from '@posthorn/signing';
import { checkWritable, openStore, readBacklog } from '@posthorn/store';
import type { ErrorRequestHandler } from 'express';
import { bullBoardRoutes } from './bull-board.ts';
import type { ConsoleSettings } from './config.ts';
import type { ConsoleContext } from './context.ts';
import { cursorProblem, deliveryRoutes } from './delivery-routes.ts';
import { subscriptionRoutes } from './subscription-routes.ts';

/** An operator waits: a command that Redis leaves unanswered for this long fails, and the answer is 503. */
const REDIS_LIMIT_MS = 5_000;

/** Builds the console; nothing listens before its services start. */
export function buildConsole(settings: ConsoleSettings, clock: Clock = systemClock): App {
  const logger = createLogger({ app: 'console', level: settings.LOG_LEVEL });
  const onError = (err: Error) => logger.warn({ err }, 'redis.error');
  const storage = openStore(settings, { failFastAfterMs: REDIS_LIMIT_MS, onError });
  const { store, bases } = storage;
  const producer = createProducer({ redis: store.redis, bases, onError });
  const context: ConsoleContext = {
    store,
    producer,
    probe: {
      allowedNetworks: settings.ALLOWED_PRIVATE_NETWORKS,
      timeoutMs: settings.ATTEMPT_TIMEOUT,
      userAgent: `Posthorn/${version}`,
    },
    requireHttps: settings.REQUIRE_HTTPS,
    secretBox: createSecretBox(settings.SECRET_ENCRYPTION_KEY),
    clock,
    logger,
  };
  const registry = createMetrics('console');
  registerBacklog(registry, async () => ({
    ...(await readBacklog(store, clock.now())),
    jobs: { ...(await producer.counts()) },
  }));
  const app = createExpress();
  app.use(operationsRouter({ registry, checkReady: () => checkWritable(store) }));
  app.use(bullBoardRoutes(producer, settings.OPERATOR_TOKENS));
  app.use('/v1', requireBearer(settings.OPERATOR_TOKENS));
  app.use(subscriptionRoutes(context), deliveryRoutes(context));
  const translate: ErrorRequestHandler = (error, _request, _response, next) => next(cursorProblem(error));
  app.use(notFoundHandler, translate, problemHandler(logger));
  const http = createHttpService({ app, host: settings.HOST, port: settings.PORT });
  if (settings.ALLOWED_PRIVATE_NETWORKS.length > 0) {
    logger.warn('ALLOWED_PRIVATE_NETWORKS is set: the address guard lets those networks through. Not for production.');
  }
  return {
    services: [storage, http],
    logger,
    graceMs: settings.SHUTDOWN_GRACE,
    describe: () => ({ url: http.url(), version, partitions: settings.PARTITIONS }),
  };
}
