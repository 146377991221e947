/** What the histogram of the publisher API counts. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it } from '@jest/globals';
import type { Request, Response } from 'express';
import { Registry } from 'prom-client';
import { measureRequests } from './metrics.ts';

it('counts each call of /v1 once, by its status, and nothing else', async () => {
  const registry = new Registry();
  const measure = measureRequests(registry);
  const server = createServer((request, response) => {
    response.statusCode = request.url?.includes('bad') ? 422 : 202;
    measure(request as Request, response as Response, () => response.end());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const paths = [
    '/v1/events',
    '/v1',
    '/V1/events?x=1',
    '/v1?x=1',
    '/v1/bad',
    '/v1/bad',
    '/v10',
    '/metrics',
    '/x/v1/',
    '/',
  ];
  for (const path of paths) await (await fetch(`${url}${path}`)).text();
  // It needs no key: counted as a call that succeeded, it would lower the share of calls that failed.
  await fetch(`${url}/v1/events`, { method: 'OPTIONS' });
  server.close();
  server.closeAllConnections();
  const [metric] = await registry.getMetricsAsJSON();
  const counts = metric?.values.filter((value) => 'metricName' in value && String(value.metricName).endsWith('_count'));
  expect(counts?.map(({ labels, value }) => [labels.status, value])).toEqual([
    [202, 4],
    [422, 2],
  ]);
});
