/** Which encryption keys a worker starts with, by the secrets that are stored in a real Redis. */
import { randomBytes } from 'node:crypto';
import { expect, it } from '@jest/globals';
import { StartError } from '@posthorn/core';
import { createSecretBox } from '@posthorn/signing';
import { newSubscription, saveSubscription } from '@posthorn/store';
import { store, time } from '../../../packages/store/src/test-deliveries.ts';
import { createKeyCheck } from './check-keys.ts';

const [own, lost] = [randomBytes(32), randomBytes(32)];
const check = () => createKeyCheck(store, createSecretBox([own])).start();

async function subscribe(key: Buffer): Promise<void> {
  const fields = { url: 'https://example.com/', eventTypes: 'all', environment: 'both', description: '' } as const;
  const fresh = newSubscription({ ...fields, sealedSecret: '' }, time.nowMs);
  await saveSubscription(store, { ...fresh, sealedSecret: createSecretBox([key]).seal('whsec_1', fresh.id) });
}

it('a worker does not start with a key that opens none of the stored secrets', async () => {
  for (let i = 0; i < 3; i++) await subscribe(lost);
  await expect(check()).rejects.toThrow(StartError);
  await expect(check()).rejects.toThrow('SECRET_ENCRYPTION_KEY opens none of the stored signing secrets');
});

it('a worker starts where its key opens one of them, however many others it does not', async () => {
  await subscribe(own);
  time.nowMs += 1;
  for (let i = 0; i < 101; i++) await subscribe(lost);
  await expect(check()).resolves.toBeUndefined();
});

it('a worker starts where there is no subscription', async () => {
  await expect(check()).resolves.toBeUndefined();
});
