/** Where /healthz, /readyz and /metrics are served: on the app's own port, or on one that strangers cannot reach. */
import { type Logger, type SharedSettings, version } from '@posthorn/runtime';
import type { Registry } from 'prom-client';
import { type Api, createApi } from './api.ts';
import { createExpress, createHttpService, type HttpService } from './http-service.ts';
import { operationsRoutes } from './operations.ts';
import { notFoundHandler, problemHandler } from './problems.ts';

/**
 * Adds the three routes to `api`, or, where `OPERATIONS_PORT` is set, returns a service of their own for that port.
 * `checkReady` rejects where the process can't do its work.
 */
export function serveOperations(options: {
  api: Api;
  settings: Pick<SharedSettings, 'HOST' | 'OPERATIONS_PORT' | 'MAX_CLIENT_CONNECTIONS' | 'TRUSTED_PROXIES'>;
  registry: Registry;
  checkReady: () => Promise<unknown>;
  logger: Logger;
}): HttpService | undefined {
  const { settings, logger } = options;
  if (settings.OPERATIONS_PORT === undefined) {
    operationsRoutes(options.api, options);
    return undefined;
  }
  const api = createApi({ title: 'Posthorn operations', version, description: 'Health and metrics.', security: {} });
  operationsRoutes(api, options);
  const app = createExpress();
  app.use(api.router, notFoundHandler, problemHandler(logger));
  const limits = connectionLimits(settings, options.registry);
  return createHttpService({ app, host: settings.HOST, port: settings.OPERATIONS_PORT, limits });
}

/** The limits of an HTTP service, from the settings. */
export function connectionLimits(
  settings: Pick<SharedSettings, 'MAX_CLIENT_CONNECTIONS' | 'TRUSTED_PROXIES'>,
  registry: Registry,
) {
  return {
    maxClientConnections: settings.MAX_CLIENT_CONNECTIONS,
    trustedProxies: settings.TRUSTED_PROXIES,
    registry,
  };
}

/** The service of an app with, where there is one, that of its operations: they start and stop together. */
export function together(http: HttpService, operations: HttpService | undefined): HttpService {
  if (operations === undefined) return http;
  return {
    ...http,
    async start() {
      await operations.start();
      await http.start();
    },
    async stop(graceMs) {
      await Promise.all([http.stop(graceMs), operations.stop(graceMs)]);
    },
  };
}
