/** What the connector of Sentinel does with connections that have ended. */
import { Socket } from 'node:net';
import { expect, it } from '@jest/globals';
import { sentinelConnector } from './sentinel-connector.ts';

it('ends a connection and its watch for failovers once, however often it tries to reach a master', () => {
  const connector = new sentinelConnector({ sentinels: [{ host: '127.0.0.1', port: 1 }], name: 'm' } as never);
  const stream = new Socket();
  let ended = 0;
  Object.assign(connector, { stream, failoverDetector: { cleanup: () => (ended += 1) } });
  for (let tries = 0; tries < 3; tries++) connector.disconnect();
  expect([stream.listenerCount('close'), ended]).toEqual([1, 1]);
  stream.destroy();
});
