/** Builds a console process from its settings. */
import { randomUUID } from 'node:crypto';
import { StartError } from '@posthorn/core';
import { installationIn, openStorage } from '@posthorn/dispatch';
import {
  type Api,
  type ApiService,
  createApi,
  createAuthFailures,
  docsRouter,
  limitCalls,
  limitPerSecond,
  requireStorage,
  serveApi,
  webhooks,
} from '@posthorn/http';
import {
  type App,
  type Clock,
  createLogger,
  createMetrics,
  createTracing,
  exitAtOnce,
  onlyAtStart,
  registerInstallation,
  systemClock,
  USER_AGENT,
  version,
  warnOfPrivateNetworks,
  warnOfShortKeys,
} from '@posthorn/runtime';
import { createOneOffSender, createResolver } from '@posthorn/sender';
import { createFingerprints, createSecretBox } from '@posthorn/signing';
import { checkSecrets, createDirectory, decodePublished, knowingChanges } from '@posthorn/store';
import type { RequestHandler } from 'express';
import { bullBoardRoutes } from './bull-board.ts';
import type { ConsoleSettings } from './config.ts';
import type { ConsoleContext } from './context.ts';
import { cursorProblem } from './cursor-problem.ts';
import { FeedHub } from './feed-hub.ts';
import { CSRF_HEADER, Operators, SESSION_COOKIE } from './operators.ts';
import { pageRoutes } from './page-routes.ts';
import { addressRoutes } from './routes/address-routes.ts';
import { deliveryRoutes } from './routes/delivery-routes.ts';
import { erasureRoutes } from './routes/erasure-routes.ts';
import { eventRoute } from './routes/event-route.ts';
import { explainRoute } from './routes/explain-route.ts';
import { insightRoutes } from './routes/insight-routes.ts';
import { listenRoutes } from './routes/listen-routes.ts';
import { replayRoutes } from './routes/replay-routes.ts';
import { sessionRoutes } from './routes/session-routes.ts';
import { signatureRoutes } from './routes/signature-routes.ts';
import { subscriptionRoutes } from './routes/subscription-routes.ts';
import { tailRoutes } from './routes/tail-routes.ts';
import { timelineRoute } from './routes/timeline-route.ts';
import { securityHeaders } from './security-headers.ts';
import { storageProblem } from './storage-problem.ts';
import { decodeTailItem } from './tail-item.ts';
import { createUnreadableLog } from './unreadable-log.ts';

const noStore: RequestHandler = (_request, response, next) => {
  response.set('Cache-Control', 'no-store');
  next();
};

/** Builds the console. Nothing listens before its services start. */
export function buildConsole(settings: ConsoleSettings, clock: Clock = systemClock): App<ApiService> {
  const logger = createLogger({ app: 'console', level: settings.LOG_LEVEL });
  warnOfShortKeys('OPERATOR_TOKENS', settings.OPERATOR_TOKENS, logger);
  warnOfPrivateNetworks(settings, logger);
  const registry = createMetrics('console');
  const tracing = createTracing({ app: 'console', settings, logger, registry });
  const { storage, store, jobQueues } = openStorage(settings, logger, {
    identity: { id: randomUUID(), app: 'console', version },
    onMismatch: (error) => exitAtOnce(logger, error),
  });
  registerInstallation(registry, installationIn(storage, jobQueues, clock.now), logger);
  const failures = createAuthFailures({ registry, logger });
  const operators = new Operators({ store, settings, failures, clock });
  const limit = limitCalls(
    limitPerSecond({
      redis: store.redis,
      keyPrefix: `${settings.KEY_PREFIX}:limit:operator`,
      perSecond: settings.OPERATOR_RATE_LIMIT,
      message: `An operator may make ${settings.OPERATOR_RATE_LIMIT} calls a second (OPERATOR_RATE_LIMIT).`,
    }),
  );
  const context = consoleContext({ settings, store, jobQueues, operators, tracing, clock, logger });
  const api = createOperatorApi(context, [operators.requireOperator, limit]);
  const http = serveApi({
    api,
    settings,
    registry,
    checkReady: storage.checkReady,
    logger,
    addRoutes(app) {
      app.use(securityHeaders());
      // Responses hold secrets and CSRF tokens, and what operators alone may see.
      app.use(['/v1', '/queues/api'], noStore);
      // Sessions are in Redis too.
      app.use(['/v1', '/queues'], requireStorage(storage.isOpen), operators.withSession);
      const back = { href: '/', label: 'Back to the console' };
      app.use(api.router, docsRouter(api, { back, icon: '/posthorn.svg' }));
      app.use(bullBoardRoutes(jobQueues, operators.requireViewer, limit));
      app.use('/v1', operators.requireOperator);
      app.use(pageRoutes(), cursorProblem, storageProblem(store));
    },
  });
  return {
    http: {
      ...http,
      async stop(graceMs) {
        // The server waits for all responses: the streams must end first.
        await Promise.all([context.tail.stop(), context.published.stop()]);
        await http.stop(graceMs);
      },
    },
    services: [
      ...(tracing ? [tracing] : []),
      storage,
      // A warning: with a lost key, this is where operators give each address a new secret.
      onlyAtStart('encryption keys', () =>
        checkSecrets(store, context.secretBox.opens).catch((error: unknown) => {
          if (!(error instanceof StartError)) throw error;
          logger.warn({}, error.message);
        }),
      ),
    ],
    logger,
    graceMs: settings.SHUTDOWN_GRACE,
  };
}

/** Adds what the routes alone use to what the process has. */
function consoleContext(
  shared: Pick<ConsoleContext, 'settings' | 'store' | 'jobQueues' | 'operators' | 'tracing' | 'clock' | 'logger'>,
): ConsoleContext {
  const { settings, store, logger } = shared;
  return {
    ...shared,
    logUnreadable: createUnreadableLog(logger),
    tail: new FeedHub({ store, feed: 'attempts', decode: decodeTailItem, logger }),
    published: new FeedHub({
      store,
      feed: 'sandbox_events',
      decode: decodePublished,
      waitsForWriters: true,
      logger,
    }),
    directory: createDirectory(store),
    validationSender: createOneOffSender({
      allowedNetworks: settings.ALLOWED_PRIVATE_NETWORKS,
      timeoutMs: settings.ATTEMPT_TIMEOUT,
      userAgent: USER_AGENT,
      resolve: createResolver({ servers: settings.DNS_SERVERS, attemptTimeoutMs: settings.ATTEMPT_TIMEOUT }),
    }),
    secretBox: createSecretBox(settings.SECRET_ENCRYPTION_KEY),
    fingerprints: createFingerprints(settings.SECRET_ENCRYPTION_KEY, 'posthorn fingerprint', 'hex'),
  };
}

function createOperatorApi(context: ConsoleContext, guards: RequestHandler[]): Api {
  const api = createApi({
    title: 'Posthorn operator API',
    description: 'Manages subscriptions; shows, tests and replays deliveries.',
    security: {
      token: { type: 'http', scheme: 'bearer', description: 'An operator token' },
      session: {
        type: 'apiKey',
        in: 'cookie',
        name: SESSION_COOKIE,
        description: `From POST /v1/session (over https its name begins with __Host-); calls other than GET also send ${CSRF_HEADER}`,
      },
    },
    guards,
    changeProblems: ['forbidden_csrf', 'not_changed'],
    change: knowingChanges,
    webhooks: webhooks(),
  });
  sessionRoutes(api, context);
  subscriptionRoutes(api, context);
  addressRoutes(api, context);
  signatureRoutes(api, context);
  deliveryRoutes(api, context);
  eventRoute(api, context);
  tailRoutes(api, context);
  listenRoutes(api, context);
  explainRoute(api, context);
  timelineRoute(api, context);
  replayRoutes(api, context);
  erasureRoutes(api, context);
  insightRoutes(api, context);
  return api;
}
