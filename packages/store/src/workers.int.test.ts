/** The heartbeats of workers. */
import { describe, expect, it } from '@jest/globals';
import { HOUR_MS } from '@posthorn/core';
import { aliveWorkers, sendHeartbeat } from './index.ts';
import { partitionPrefix, workersKey, workersSeenKey } from './keys.ts';
import { store } from './test-deliveries.ts';

const nowMs = Date.now();

describe('workers', () => {
  const worker = {
    id: 'w',
    host: 'h',
    pid: 1,
    version: '0',
    startedAtMs: nowMs,
    concurrency: 1,
    addressConcurrency: 1,
    inFlight: 0,
    outageSinceMs: null,
  };
  it('are alive while they send heartbeats, and are removed a minute after the last one', async () => {
    const prefix = partitionPrefix(store, 0);
    const age = (ms: number) => store.redis.zincrby(workersSeenKey(prefix), -ms, 'old');
    const alive = async () => (await aliveWorkers(store)).map(({ id }) => id);
    await sendHeartbeat(store, { ...worker, id: 'old' });
    await sendHeartbeat(store, worker);
    expect(await alive()).toEqual(['old', 'w']);
    await age(10_000);
    expect(await alive()).toEqual(['w']);
    const ages = new Map((await aliveWorkers(store, 60_000)).map(({ id, seenAgoMs }) => [id, seenAgoMs]));
    expect(ages.get('old')! - ages.get('w')!).toBeGreaterThanOrEqual(10_000);
    // As if the clock of Redis had been set back by an hour since.
    await age(-HOUR_MS);
    expect(await alive()).toEqual(['w']);
    await age(3_650_000);
    await sendHeartbeat(store, worker);
    expect(await store.redis.hkeys(workersKey(prefix))).toEqual(['w']);
  });
});
