/** The routes for operations while Redis does not reply. */
import { afterEach, expect, it, jest } from '@jest/globals';
import { Registry } from 'prom-client';
import { createApi } from './api.ts';
import { operationsRoutes } from './operations.ts';

afterEach(() => void jest.useRealTimers());

it('check once whether a process is ready while Redis does not reply, however often they are called', async () => {
  jest.useFakeTimers({ doNotFake: ['setImmediate'] });
  const checkReady = jest.fn(() => new Promise<never>(() => undefined));
  const api = createApi({ title: 'Test', description: '', security: {} });
  operationsRoutes(api, { registry: new Registry(), checkReady });
  const handle = api.direct.get('GET /readyz')?.at(-1) as unknown as (...args: unknown[]) => Promise<void>;
  const response = { status: () => response, locals: {} };
  for (let i = 0; i < 3; i++) {
    const call = expect(handle({}, response)).rejects.toMatchObject({ code: 'unavailable' });
    await jest.advanceTimersByTimeAsync(10_000);
    await call;
  }
  expect(checkReady).toHaveBeenCalledTimes(1);
});
