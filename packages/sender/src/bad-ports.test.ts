/** The ports that the guard refuses, compared with an implementation of the standard that they come from. */
import { expect, it } from '@jest/globals';
import { checkUrl } from './index.ts';

const isRefused = (port: number) => !checkUrl(`http://example.com:${port}/`, []).ok;

/**
 * Whether Node's fetch refuses a port. Nothing is connected to: what it does not refuse gets as far as this dispatcher,
 * which fails.
 */
async function fetchRefuses(port: number): Promise<boolean> {
  const dispatcher = {
    dispatch(_options: unknown, handler: { onError?(error: Error): void }) {
      handler.onError?.(new Error('not refused'));
      return true;
    },
  };
  const options = { dispatcher } as unknown as RequestInit;
  const error = await fetch(`http://example.com:${port}/`, options).catch((cause) => cause);
  return error.cause.message === 'bad port';
}

it('refuses the same ports as fetch (Fetch standard, "bad port")', async () => {
  // Port 0 has been bad since 2025; not every Node knows.
  expect(isRefused(0)).toBe(true);
  const near = new Set(Array.from({ length: 1_023 }, (_, i) => i + 1));
  for (let port = 1; port <= 65_535; port++) {
    if (isRefused(port)) for (const neighbour of [port - 1, port, port + 1]) near.add(neighbour);
  }
  const differing: number[] = [];
  for (const port of near) {
    if (port !== 0 && isRefused(port) !== (await fetchRefuses(port))) differing.push(port);
  }
  expect(differing).toEqual([]);
});
