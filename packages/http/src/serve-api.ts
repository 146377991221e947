/** Serves an app's API together with the routes for operations: /healthz, /readyz and /metrics. */
import type { RequestListener } from 'node:http';
import { type Logger, type SharedSettings, version } from '@posthorn/runtime';
import type { Express, RequestHandler } from 'express';
import type { Registry } from 'prom-client';
import { type Api, createApi } from './api.ts';
import { warnOfFewFiles } from './few-files.ts';
import { createExpress, createHttpService, type HttpService, MAX_CONNECTIONS, requireOneHost } from './http-service.ts';
import { operationsRoutes } from './operations.ts';
import { notFoundHandler, problemHandler } from './problems.ts';
import { withShortcuts } from './shortcut.ts';

interface ApiOptions {
  /** Without one, only the routes for operations are served. */
  api?: Api;
  settings: SharedSettings;
  registry: Registry;
  /** Rejects if the process cannot do its work. */
  checkReady: () => Promise<unknown>;
  logger: Logger;
  /**
   * All middleware that runs before `api.router`. With it, `api.router` is added here, and its usual routes bypass
   * express (shortcut.ts).
   */
  before?: readonly RequestHandler[];
  /** Adds the app's middleware and, without `before`, `api.router`. Errors and unknown paths are handled after it. */
  addRoutes?: (app: Express) => void;
}

export interface ApiService extends HttpService {
  /** Returns the fields of the `ready` log line. */
  describe(): Record<string, unknown>;
}

/** For an API that nobody reads a document of. */
const OPERATIONS = { title: 'Posthorn operations', description: 'Health and metrics.', security: {} };

/**
 * Returns a service for the port `PORT`. The routes for operations are part of `api`, or have a port of their own if
 * `OPERATIONS_PORT` is set.
 */
export function serveApi(options: ApiOptions): ApiService {
  const { api = createApi(OPERATIONS), settings, registry, logger, before } = options;
  const { addRoutes = (app) => app.use(api.router) } = options;
  const onError = problemHandler(logger);
  const listen = (app: Express, port: number, listener?: RequestListener) =>
    createHttpService(app.use(notFoundHandler, onError), { port, settings, registry, listener });
  const operations =
    settings.OPERATIONS_PORT === undefined ? undefined : listen(operationsApp(options), settings.OPERATIONS_PORT);
  if (!operations) operationsRoutes(api, options);
  const app = createExpress(settings.TRUSTED_PROXIES);
  if (before) app.use(...before, api.router);
  addRoutes(app);
  const shortcuts = before && { routes: api.direct, before: [requireOneHost, ...before], onError };
  const http = listen(app, settings.PORT, shortcuts && withShortcuts(app, shortcuts));
  return {
    ...http,
    describe: () => ({ url: http.url(), operations_url: operations?.url(), version, partitions: settings.PARTITIONS }),
    async start() {
      await operations?.start();
      await http.start();
      await warnOfFewFiles(registry, MAX_CONNECTIONS, logger);
    },
    async stop(graceMs) {
      await Promise.all([http.stop(graceMs), operations?.stop(graceMs)]);
    },
  };
}

function operationsApp(options: ApiOptions): Express {
  const api = createApi(OPERATIONS);
  operationsRoutes(api, options);
  return createExpress().use(api.router);
}
