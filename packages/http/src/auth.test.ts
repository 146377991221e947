/** Bearer keys over real connections. */
import { describe, expect, it } from '@jest/globals';
import { Registry } from 'prom-client';
import { createAuthFailures, principalOf, requireBearer } from './index.ts';
import { logged, logger, serve } from './test-service.ts';

describe('keys', () => {
  it('only a known key is accepted, and its principal is set', async () => {
    const url = await serve((app) => {
      app.use(
        requireBearer(
          [
            { name: 'a', key: 'key-a' },
            { name: 'b', key: 'key-b' },
          ],
          createAuthFailures({ registry: new Registry(), logger }),
        ),
      );
      app.get('/', (_request, response) => void response.json(principalOf(response)));
    });
    const get = (authorization?: string) =>
      fetch(url, { headers: authorization === undefined ? {} : { authorization } });
    for (const bad of [undefined, 'Bearer', 'Bearer key-', 'Bearer key-aa', 'Basic key-a', 'key-a']) {
      const response = await get(bad);
      expect(response.status).toBe(401);
      expect(response.headers.get('www-authenticate')).toBe('Bearer');
    }
    for (const good of ['Bearer key-b', 'bearer key-b', 'Bearer  key-b '])
      expect(await (await get(good)).json()).toMatchObject({ name: 'b' });
    expect(logged.join('')).not.toContain('key-');
    const outcomes = logged.flatMap((line) => JSON.parse(line).outcome ?? []);
    // The first five of a second are logged.
    expect(outcomes.slice(0, 5)).toEqual(['missing', 'missing', 'refused', 'refused', 'missing']);
  });
});
