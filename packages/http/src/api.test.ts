/** What a route that is declared in an API guarantees to all callers. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { describe, expect, it } from '@jest/globals';
import { eventually } from '@posthorn/testing';
import { z } from 'zod';
import { createApi, createBudget } from './index.ts';
import { startService } from './test-service.ts';

describe('a budget', () => {
  it('is held until a call is handled, although its client has gone', async () => {
    const budget = createBudget(100);
    const isFree = () => budget.claimFor('another').hasRoomFor(100);
    const handling = Promise.withResolvers<void>();
    const [began, closed] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const api = createApi({ title: 'Test', description: '', security: {} });
    api.tagged('Things').post('/things', {
      summary: 'Does something',
      body: z.object({}),
      admission: { budget, weigh: (bytes) => bytes },
      responses: { 200: { description: 'Done' } },
      async handle({ response }) {
        response.on('close', () => closed.resolve());
        began.resolve();
        await handling.promise;
      },
    });
    const { hostname, port } = new URL((await startService((app) => app.use(api.router))).url());
    const client = connect(Number(port), hostname);
    await once(client, 'connect');
    client.write('POST /things HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}');
    await began.promise;
    client.destroy();
    await closed.promise;
    expect(isFree()).toBe(false);
    handling.resolve();
    await eventually('the whole budget to be free', isFree);
  });
});
