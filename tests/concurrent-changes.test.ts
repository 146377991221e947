/**
 * Many operators change one subscription concurrently: each call succeeds or is refused with 409, none fails with 500.
 */
import { expect, it } from '@jest/globals';
import { ownReceiver, ownWorld } from './own.ts';

it('each of 100 concurrent validations of one subscription gets 200 or 409', async () => {
  const world = await ownWorld({ workers: 0, env: { OPERATOR_RATE_LIMIT: '1000' } });
  const { id } = await world.subscribe((await ownReceiver()).url);
  const answers = await Promise.all(
    Array.from({ length: 100 }, () => world.operate('POST', `/v1/subscriptions/${id}/validate`)),
  );
  const statuses = answers.map(({ status }) => status);
  expect(statuses.filter((status) => status !== 200 && status !== 409)).toEqual([]);
  expect(statuses).toContain(200);
  for (const { status, body } of answers) {
    if (status === 409)
      expect(body.detail).toBe('Too many calls change this subscription at the same time. Try again.');
  }
  expect(await world.subscription(id)).toMatchObject({ status: 'active', status_reason: null });
});
