/** Problem documents over real connections. */
import { describe, expect, it } from '@jest/globals';
import { AppError, StorageUnavailable } from '@posthorn/core';
import { eventually } from '@posthorn/testing';
import { problemHandler } from './problems.ts';
import { logged, logger, serve } from './test-service.ts';

describe('problems', () => {
  it('unknown routes, undecodable paths, bugs and storage failures have their own status', async () => {
    const url = await serve((app) => {
      app.get('/bug', () => {
        throw new Error('secret detail');
      });
      app.get('/redis', () => {
        throw new StorageUnavailable('OOM command not allowed when used memory > maxmemory');
      });
      app.get('/limited', () => {
        throw new AppError('too_many_requests', 'Slow down.', { retryAfterS: 7 });
      });
      app.get('/item/:id', (_request, response) => void response.end());
    });
    expect((await fetch(`${url}/none`)).status).toBe(404);
    expect((await fetch(`${url}/item/%zz`)).status).toBe(404);
    const bug = await fetch(`${url}/bug`);
    expect([bug.status, await bug.text()]).toEqual([500, expect.not.stringContaining('secret detail')]);
    const redis = await fetch(`${url}/redis`);
    expect([redis.status, redis.headers.get('retry-after')]).toEqual([503, '5']);
    expect(await redis.json()).toMatchObject({ detail: 'Storage is full: it takes no changes.' });
    expect((await fetch(`${url}/limited`)).headers.get('retry-after')).toBe('7');
    expect(logged.filter((line) => line.includes('request.failed'))).toHaveLength(1);
  });

  it('a storage failure is not said to have stored nothing: a command without a reply may have been applied', async () => {
    const url = await serve((app) => {
      app.use(() => {
        throw new StorageUnavailable('Command timed out');
      });
    });
    const { title, detail } = (await (await fetch(url)).json()) as { title: string; detail: string };
    expect([title, detail]).toEqual(['Storage is unavailable', 'Storage is unavailable; retry shortly.']);
  });

  it('refusals with 503 are logged once a second, with their number', async () => {
    let nowMs = 0;
    const url = await serve((app) => {
      app.use(() => {
        throw new StorageUnavailable('LOADING Redis is loading the dataset in memory');
      });
      app.use(problemHandler(logger, () => nowMs));
    });
    const call = async () => expect((await fetch(url)).status).toBe(503);
    for (let i = 0; i < 5; i++) await call();
    nowMs = 1_000;
    await call();
    const reason = { msg: 'request.rejected', err: { message: expect.stringContaining('LOADING') }, status: 503 };
    expect(logged.map((line) => JSON.parse(line))).toMatchObject([
      { ...reason, calls: 1 },
      { ...reason, calls: 5 },
    ]);
  });

  it('many internal errors are logged in a few lines, with how many more there were', async () => {
    const url = await serve((app) => {
      app.use(() => {
        throw new Error('a bug');
      });
    });
    const statuses = await Promise.all(Array.from({ length: 50 }, async () => (await fetch(url)).status));
    expect(new Set(statuses)).toEqual(new Set([500]));
    const lines = () => logged.map((line) => JSON.parse(line)).filter(({ msg }) => msg === 'request.failed');
    const told = () => lines().reduce((sum, { suppressed }) => sum + (suppressed ?? 1), 0);
    await eventually('all errors to be accounted for', () => told() === 50);
    expect(lines().length).toBeLessThan(50);
  });
});
