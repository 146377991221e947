/** What a route that is declared in an API guarantees to all callers. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { describe, expect, it } from '@jest/globals';
import { eventually } from '@posthorn/testing';
import type { Response } from 'express';
import { z } from 'zod';
import { createApi, createBudget } from './index.ts';
import { startService } from './test-service.ts';

/** Serves a route that holds as much of a budget as its body has bytes, and sends it bodies. */
async function start(route: {
  turnFor?: () => Promise<void>;
  maxBodyBytes?: number;
  handle: (response: Response) => Promise<void>;
}) {
  const budget = createBudget(100_000);
  let closed = 0;
  const api = createApi({ title: 'Test', description: '', security: {} });
  api.tagged('Things').post('/things', {
    summary: 'Does something',
    body: z.string(),
    bodyBudget: { budget, weigh: (bytes) => bytes },
    ...(route.turnFor && { turnFor: route.turnFor }),
    ...(route.maxBodyBytes && { maxBodyBytes: route.maxBodyBytes }),
    responses: { 200: { description: 'Done' } },
    handle: ({ response }) => route.handle(response),
  });
  const service = await startService((app) => {
    app.use((_request, response, next) => {
      response.on('close', () => {
        closed += 1;
      });
      next();
    }, api.router);
  });
  const { hostname, port } = new URL(service.url());
  /** Sends the headers of a request alone. */
  const announce = async (bytes: number): Promise<Socket> => {
    const client = connect(Number(port), hostname);
    await once(client, 'connect');
    const head = `host: x\r\ncontent-type: application/json\r\ncontent-length: ${bytes}`;
    client.write(`POST /things HTTP/1.1\r\n${head}\r\n\r\n`);
    return client;
  };
  return {
    closed: () => closed,
    isFree: () => budget.shareFor('another').hasRoomFor(100_000),
    announce,
    async send(characters: number): Promise<Socket> {
      const body = JSON.stringify('x'.repeat(characters));
      const client = await announce(body.length);
      client.write(body);
      return client;
    },
  };
}

describe('a budget', () => {
  it('is held until a call is handled, although its client has gone', async () => {
    const [began, handling] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const { send, closed, isFree } = await start({
      async handle() {
        began.resolve();
        await handling.promise;
      },
    });
    const client = await send(1);
    await began.promise;
    client.destroy();
    await eventually('the response to be closed', () => closed() === 1);
    expect(isFree()).toBe(false);
    handling.resolve();
    await eventually('the whole budget to be free', isFree);
  });
});

describe('a large body', () => {
  it('gets 413, not 503, if it is larger than what one caller may hold, whatever its route allows', async () => {
    const { announce } = await start({ maxBodyBytes: 32 * 1024 * 1024, async handle() {} });
    const [response] = await once(await announce(16 * 1024 * 1024 + 1), 'data');
    expect(String(response)).toMatch(/^HTTP\/1\.1 413 .*larger than 16777216 bytes/s);
  });
  it('is parsed in its turn and handled in another one, and neither if its client has gone, but is counted until then', async () => {
    const turn = Promise.withResolvers<void>();
    let [asked, handled] = [0, 0];
    const { send, closed, isFree } = await start({
      turnFor() {
        asked += 1;
        return turn.promise;
      },
      async handle() {
        handled += 1;
      },
    });
    const small = await send(1);
    await once(small, 'data');
    small.destroy();
    expect([asked, handled]).toEqual([0, 1]);
    const [staying, leaving] = [await send(20_000), await send(20_000)];
    await eventually('both to wait for their turns', () => asked === 2);
    leaving.destroy();
    await eventually('its response to be closed', () => closed() === 2);
    expect([handled, isFree()]).toEqual([1, false]);
    turn.resolve();
    await once(staying, 'data');
    staying.destroy();
    await eventually('the whole budget to be free', isFree);
    expect([asked, handled]).toEqual([3, 2]);
  });
});
