/** An HTTP service for the tests of this package, with the routes of the test. */
import { afterEach } from '@jest/globals';
import { createLogger } from '@posthorn/runtime';
import type { Express } from 'express';
import { Registry } from 'prom-client';
import { createExpress, createHttpService, type HttpService } from './http-service.ts';
import { notFoundHandler, problemHandler } from './problems.ts';

/** Log lines since the test began. */
export const logged: string[] = [];
export const logger = createLogger({
  app: 'test',
  level: 'info',
  destination: { write: (line) => void logged.push(line) },
});
const settings = { HOST: '127.0.0.1', MAX_CLIENT_CONNECTIONS: 1_000, TRUSTED_PROXIES: [] };
let service: HttpService | undefined;
afterEach(async () => {
  await service?.stop(1_000);
  logged.length = 0;
});

/** Starts a service, which stops after the test. */
export async function startService(
  routes: (app: Express) => void,
  change: { HOST?: string; TRUSTED_PROXIES?: string[] } = {},
): Promise<HttpService> {
  const app = createExpress();
  routes(app);
  app.use(notFoundHandler, problemHandler(logger));
  service = createHttpService(app, { port: 0, settings: { ...settings, ...change }, registry: new Registry() });
  await service.start();
  return service;
}

/** Starts a service and returns its URL. */
export async function serve(routes: (app: Express) => void): Promise<string> {
  return (await startService(routes)).url();
}

/** A POST with a JSON body. */
export const json = (body: string | Buffer, type = 'application/json') => ({
  method: 'POST',
  headers: { 'content-type': type },
  body,
});
