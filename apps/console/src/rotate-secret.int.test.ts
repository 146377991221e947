/** Rotations of a secret that meet other changes, on a real Redis. */
import { describe, expect, it } from '@jest/globals';
import { newSubscriptionId } from '@posthorn/core';
import { createSecretBox } from '@posthorn/signing';
import { changeSubscription, loadSubscriptions } from '@posthorn/store';
import { store, subscribe } from '../../../packages/store/src/test-deliveries.ts';
import { sendTwice } from '../../../packages/store/src/test-send-twice.ts';
import { rotateSecret } from './rotate-secret.ts';

const keys = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)] as const;
const secretBox = createSecretBox(keys);
const rotate = (id: string) =>
  rotateSecret({ store, secretBox, clock: { now: Date.now } }, id, { operator: 'anna', overlapMs: 1_000 });
const secretOf = async (id: string) => secretBox.open((await loadSubscriptions(store, [id]))[0]!.sealedSecret, id);

describe('a rotation', () => {
  it('is refused if another one is made at the same time, whose secret stays', async () => {
    const { id } = await subscribe();
    const results = await Promise.allSettled([rotate(id), rotate(id), rotate(id)]);
    const made = results.filter((result) => result.status === 'fulfilled');
    expect(made.map(({ value }) => value.secret)).toEqual([await secretOf(id)]);
    for (const result of results)
      if (result.status === 'rejected') expect(result.reason).toMatchObject({ code: 'conflict' });
  });
  it('is made once, also if its reply is lost and something else is changed in between', async () => {
    const id = newSubscriptionId();
    const first = secretBox.seal('first', id);
    await subscribe({ id, sealedSecret: first });
    sendTwice(store, 'saveSubscription', async () => {
      await changeSubscription(store, id, (now) => ({ ...now, description: 'another' }));
    });
    const { secret, rotated } = await rotate(id);
    expect(await secretOf(id)).toBe(secret);
    expect(rotated).toMatchObject({ description: 'another', previousSealedSecret: first });
  });
  it('is made once, also if its reply is lost and a worker with another first key seals the secret again', async () => {
    const { id } = await subscribe();
    const worker = createSecretBox([keys[1], keys[0]]);
    sendTwice(store, 'saveSubscription', async () => {
      const reseal = (sealed: string) => worker.reseal(sealed, id) ?? '';
      await changeSubscription(store, id, (now) => ({ ...now, sealedSecret: reseal(now.sealedSecret) }));
    });
    const { secret } = await rotate(id);
    expect(await secretOf(id)).toBe(secret);
  });
});
