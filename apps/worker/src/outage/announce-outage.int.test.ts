/** The notices of outages, on a real Redis that does not always accept them. */
import { expect, it, jest } from '@jest/globals';
import { StorageUnavailable } from '@posthorn/core';
import { createLogger } from '@posthorn/runtime';
import { waitingNotices } from '@posthorn/store';
import { eventually } from '@posthorn/testing';
import { store, time } from '../../../../packages/store/src/test-deliveries.ts';
import { createOutageAnnouncer } from './announce-outage.ts';

it('stores the start of an outage before its end, also if Redis has refused the start at first', async () => {
  const errors: Error[] = [];
  const { onStart, onEnd } = createOutageAnnouncer({
    store,
    logger: createLogger({ app: 'test', level: 'silent' }),
    metrics: { outage: () => undefined },
    clock: { now: () => time.nowMs },
    setPaused: () => undefined,
    onError: (error) => errors.push(error),
    giveUp: new AbortController().signal,
  });
  jest.spyOn(store.redis, 'xadd').mockRejectedValueOnce(new StorageUnavailable('Redis is full.'));
  const outage = { kind: 'dns', startedAtMs: time.nowMs } as const;
  onStart(outage);
  onEnd(outage, time.nowMs);
  const stored = await eventually('both notices', async () => {
    const notices = await waitingNotices(store, 0, 10, {});
    return notices.length === 2 && notices;
  });
  expect(stored.map(({ type }) => type)).toEqual(['outage.started', 'outage.ended']);
  expect(errors).toEqual([]);
});
