/** How many trials the duty sends at once, on a real Redis. */
import { afterEach, expect, it, jest } from '@jest/globals';
import { deliver, store, subscribe, subscriptionIdIn, time } from '../../../../packages/store/src/test-deliveries.ts';
import type { DutyContext } from './duty.ts';
import { sendTrials } from './send-trials.ts';

const AT_ONCE = 20;

afterEach(() => void jest.restoreAllMocks());

it('sends the trials of many addresses side by side, and only so many at once', async () => {
  const ids: string[] = [];
  for (let i = 0; i < 2 * AT_ONCE + 5; i++) {
    const { id } = await subscribe({ id: subscriptionIdIn(0), status: 'paused' });
    await deliver([id]);
    await store.redis.hset(`${store.prefix}:{0}:subscription:${id}`, 'status', 'resuming');
    ids.push(id);
  }
  await store.redis.sadd(`${store.prefix}:{0}:resuming`, ...ids);
  let [inFlight, most] = [0, 0];
  const redis = store.redis as unknown as { script_sendTrial: (...args: unknown[]) => Promise<unknown> };
  const send = redis.script_sendTrial.bind(redis);
  jest.spyOn(redis, 'script_sendTrial').mockImplementation(async (...args) => {
    inFlight += 1;
    most = Math.max(most, inFlight);
    return await send(...args).finally(() => {
      inFlight -= 1;
    });
  });
  await sendTrials({ store, clock: { now: () => time.nowMs } } as unknown as DutyContext).run(0);
  expect(most).toBe(AT_ONCE);
  expect(await store.redis.llen(`${store.prefix}:{0}:deliveries:wait`)).toBe(ids.length);
});
