/** A change of an address whose reply was lost, on a real Redis. */
import { expect, it, jest } from '@jest/globals';
import type { Api } from '@posthorn/http';
import { changeSubscription } from '@posthorn/store';
import { store, subscribe } from '../../../../packages/store/src/test-deliveries.ts';
import { sendTwice } from '../../../../packages/store/src/test-send-twice.ts';
import type { ConsoleContext } from '../context.ts';
import { subscriptionRoutes } from './subscription-routes.ts';

interface Patch {
  handle: (call: { params: { id: string }; body: { url: string }; caller: string }) => Promise<unknown>;
}

it('waits for the attempts to the old url also if its reply was lost and something else is changed in between', async () => {
  const active = jest.fn(async () => []);
  const settings = { ALLOWED_PRIVATE_NETWORKS: [], REQUIRE_HTTPS: 'never', ATTEMPT_TIMEOUT: 8_000 };
  const context = { store, settings, clock: { now: Date.now }, jobQueues: { active } } as unknown as ConsoleContext;
  let route: Patch | undefined;
  const patch = (_path: string, declared: Patch) => {
    route = declared;
  };
  const others = { get: jest.fn(), post: jest.fn(), delete: jest.fn() };
  subscriptionRoutes({ tagged: () => ({ ...others, patch }) } as unknown as Api, context);
  const { id } = await subscribe();
  sendTwice(store, 'saveSubscription', async () => {
    await changeSubscription(store, id, (now) => ({ ...now, description: 'another' }));
  });
  const url = 'https://new.example/';
  const changed = await route?.handle({ params: { id }, body: { url }, caller: 'anna' });
  expect(changed).toMatchObject({ url, description: 'another', status: 'awaiting_validation' });
  expect(active).toHaveBeenCalledTimes(1);
});
