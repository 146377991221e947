/** What resealing does with errors, on a real Redis that refuses writes. */
import { randomBytes } from 'node:crypto';
import { expect, it, jest } from '@jest/globals';
import { StorageUnavailable } from '@posthorn/core';
import { createLogger } from '@posthorn/runtime';
import { createSecretBox } from '@posthorn/signing';
import { newSubscription, saveSubscription } from '@posthorn/store';
import { store, time } from '../../../packages/store/src/test-deliveries.ts';
import { resealSecrets } from './reseal-secrets.ts';

const older = randomBytes(32);

async function threeSealedWith(key: Buffer): Promise<string[]> {
  const fields = { url: 'https://example.com/', eventTypes: 'all', environment: 'both', description: '' } as const;
  const ids: string[] = [];
  for (let i = 0; i < 3; i++) {
    const fresh = newSubscription({ ...fields, sealedSecret: '' }, time.nowMs);
    await saveSubscription(store, { ...fresh, sealedSecret: createSecretBox([key]).seal('whsec_1', fresh.id) });
    ids.push(fresh.id);
  }
  return ids;
}

it('names the subscriptions whose secrets no key opens in one line', async () => {
  const ids = await threeSealedWith(randomBytes(32));
  const logger = createLogger({ app: 'test', level: 'silent' });
  const errors = jest.spyOn(logger, 'error');
  const secretBox = createSecretBox([older]);
  expect(await resealSecrets({ store, logger, secretBox })).toEqual({ resealed: 0, unopened: 3 });
  const named = expect.objectContaining({ subscriptions: 3, subscription_ids: expect.arrayContaining(ids) });
  expect(errors.mock.calls).toEqual([[named, 'secrets.reseal_failed']]);
});

it('ends at once if Redis is unavailable, and blames no secret for it', async () => {
  await threeSealedWith(older);
  const logger = createLogger({ app: 'test', level: 'silent' });
  const errors = jest.spyOn(logger, 'error');
  const commands = store.redis as unknown as { script_saveSubscription: () => Promise<unknown> };
  const saves = jest
    .spyOn(commands, 'script_saveSubscription')
    .mockImplementation(() => Promise.reject(new StorageUnavailable('Redis is full.')));
  const resealing = resealSecrets({ store, logger, secretBox: createSecretBox([randomBytes(32), older]) });
  await expect(resealing).rejects.toThrow('Redis is full.');
  expect([saves.mock.calls.length, errors.mock.calls]).toEqual([1, []]);
});
