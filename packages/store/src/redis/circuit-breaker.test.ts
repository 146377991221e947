/** A circuit breaker for calls to what may hang: who waits, who is refused, and what ends that. */
import { describe, expect, it } from '@jest/globals';
import { StorageUnavailable } from '@posthorn/core';
import { createCircuitBreaker } from './circuit-breaker.ts';
import { typedError } from './storage-errors.ts';

const LIMIT_MS = 1;
const late = 'No reply within 1 ms about a';

/** A call that hangs until it is told how it ends. */
function hanging() {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  return { call: () => promise, resolve, reject };
}

describe('a circuit breaker for calls to what may hang', () => {
  it('refuses further calls at once after one that hung, until a late reply, and those about others never', async () => {
    const breaker = createCircuitBreaker(LIMIT_MS, () => 0);
    const hung = hanging();
    await expect(breaker('a', hung.call)).rejects.toThrow(new StorageUnavailable(late));
    await expect(breaker('a', () => Promise.reject(new Error('called')))).rejects.toThrow(late);
    expect(await breaker('b', async () => 'other')).toBe('other');
    hung.resolve('late');
    await hung.call();
    expect(await breaker('a', async () => 'again')).toBe('again');
  });

  it('refuses further calls at once after one that could not be made, and none after an error of Redis', async () => {
    let nowMs = 0;
    const breaker = createCircuitBreaker(LIMIT_MS, () => nowMs);
    const full = Object.assign(new Error('OOM command not allowed'), { name: 'ReplyError' });
    await expect(breaker('a', () => Promise.reject(typedError(full)))).rejects.toThrow('OOM');
    const closed = new StorageUnavailable('Connection is closed.');
    await expect(breaker('a', () => Promise.reject(closed))).rejects.toThrow(closed);
    await expect(breaker('a', async () => 'not called')).rejects.toThrow(closed);
    nowMs += LIMIT_MS;
    await expect(breaker('a', async () => 'called')).rejects.toThrow(closed);
    expect(await breaker('a', async () => 'again')).toBe('again');
  });

  it('calls again after a while, for which nobody waits; only a reply ends the refusals, also one that is an error', async () => {
    let nowMs = 0;
    const breaker = createCircuitBreaker(LIMIT_MS, () => nowMs);
    const [first, second, third] = [hanging(), hanging(), hanging()];
    await expect(breaker('a', first.call)).rejects.toThrow(late);
    for (const { call } of [second, third]) {
      nowMs += LIMIT_MS;
      await expect(breaker('a', call)).rejects.toThrow(late);
    }
    second.reject(new StorageUnavailable('Connection is closed.'));
    await expect(breaker('a', async () => 'not called')).rejects.toThrow(late);
    third.reject(new Error('WRONGTYPE'));
    await third.call().catch(() => undefined);
    expect(await breaker('a', async () => 'again')).toBe('again');
  });
});
