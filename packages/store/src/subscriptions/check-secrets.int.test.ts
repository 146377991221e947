/** Which encryption keys are refused, by the secrets that are stored in a real Redis. */
import { expect, it } from '@jest/globals';
import { StartError } from '@posthorn/core';
import { store, subscribe, time } from '../test-deliveries.ts';
import { checkSecrets } from './check-secrets.ts';

const opens = (sealed: string) => sealed === 'own';

it('keys that open none of the stored secrets are refused', async () => {
  for (let i = 0; i < 3; i++) await subscribe({ sealedSecret: 'lost' });
  await expect(checkSecrets(store, opens)).rejects.toThrow(StartError);
  await expect(checkSecrets(store, opens)).rejects.toThrow('SECRET_ENCRYPTION_KEY opens none of the stored');
});

it('keys that open one secret are not refused, however many newer ones they do not open', async () => {
  await subscribe({ sealedSecret: 'own' });
  time.nowMs += 1;
  await Promise.all(Array.from({ length: 1_001 }, () => subscribe({ sealedSecret: 'lost' })));
  await expect(checkSecrets(store, opens)).resolves.toBeUndefined();
});

it('no keys are refused where there is no subscription', async () => {
  await expect(checkSecrets(store, opens)).resolves.toBeUndefined();
});
