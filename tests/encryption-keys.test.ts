/** Replacing SECRET_ENCRYPTION_KEY while everything runs, and sealed secrets that were moved to another record. */
import { randomBytes } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import { HOUR_MS } from '@posthorn/core';
import { createLogger } from '@posthorn/runtime';
import { createSecretBox } from '@posthorn/signing';
import { loadSubscriptions } from '@posthorn/store';
import { isDelivery } from '@posthorn/testing';
import { createRequestSigner } from '../apps/worker/src/attempts/sign-request.ts';
import { resealSecrets } from '../apps/worker/src/reseal-secrets.ts';
import { overwriteSubscription, ownProcess, ownReceiver, ownStore, ownWorld } from './own.ts';
import { isSigned } from './signed.ts';
import { apiClients, ENCRYPTION_KEY, OPERATOR_TOKEN, sampleEvent } from './world.ts';

const older = Buffer.from(ENCRYPTION_KEY, 'base64');
const newer = randomBytes(32);

describe('SECRET_ENCRYPTION_KEY with a new key before the old one', () => {
  it('delivers with secrets that the old key sealed, and seals them again, so that the old key can be removed', async () => {
    const keys = `${newer.toString('base64')},${older.toString('base64')}`;
    const world = await ownWorld({ env: { SECRET_ENCRYPTION_KEY: keys } });
    const receiver = await ownReceiver();
    const { id, secret } = await world.subscribe(receiver.url);
    const store = await ownStore(world);
    // As an older process stored it, during a rotation of the signing secret.
    const sealed = createSecretBox([older]);
    const previous = { previous_secret: sealed.seal('whsec_previous', id), previous_until: Date.now() + HOUR_MS };
    await overwriteSubscription(world, id, { secret: sealed.seal(secret, id), ...previous });

    await world.publish(sampleEvent());
    const [delivery] = await receiver.received(1, isDelivery);
    const header = String(delivery!.headers['service-signature']);
    const nowS = Math.floor(Date.now() / 1000);
    expect(await isSigned({ header, secret, body: delivery!.body, nowS })).toBe(true);
    expect(await isSigned({ header, secret: 'whsec_previous', body: delivery!.body, nowS })).toBe(true);

    const context = {
      store,
      secretBox: createSecretBox([newer, older]),
      logger: createLogger({ app: 'test', level: 'silent' }),
    };
    expect(await resealSecrets(context)).toEqual({ resealed: 1, unopened: 0 });
    expect(await resealSecrets(context)).toEqual({ resealed: 0, unopened: 0 });
    const [stored] = await loadSubscriptions(store, [id]);
    const alone = createSecretBox([newer]);
    expect(alone.open(stored!.sealedSecret, id)).toBe(secret);
    expect(alone.open(stored!.previousSealedSecret!, id)).toBe('whsec_previous');
  });
});

describe('a new key in place of one that is lost', () => {
  it('keeps workers from starting until a console has rotated a secret; then what has waited arrives', async () => {
    const before = await ownWorld({ workers: 0 });
    const receiver = await ownReceiver();
    const { id } = await before.subscribe(receiver.url);
    await before.publish(sampleEvent());
    const env = { ...before.env, SECRET_ENCRYPTION_KEY: newer.toString('base64'), LOG_LEVEL: 'warn' };
    const refused = ownProcess('worker', env);
    expect(await refused.ended).toBe(1);
    const warning = 'SECRET_ENCRYPTION_KEY opens none of the stored signing secrets';
    expect(refused.output.join('\n')).toContain(warning);

    const console = ownProcess('console', { ...env, LOG_LEVEL: 'info' });
    const { url } = await console.ready;
    expect(console.output.join('\n')).toContain(warning);
    const { operate } = apiClients('', url);
    const [{ id: waiting }] = await before.deliveries('status=pending');
    for (const answer of [
      await operate('POST', `/v1/subscriptions/${id}/check-signature`, { header: 't=1,v1=00', body: '{}' }),
      await operate('GET', `/v1/deliveries/${waiting}/request`),
    ]) {
      expect([answer.status, answer.body.detail]).toEqual([409, expect.stringContaining(`opens the secret of ${id}`)]);
    }
    const response = await fetch(`${url}/v1/subscriptions/${id}/rotate-secret`, {
      method: 'POST',
      headers: { authorization: `Bearer ${OPERATOR_TOKEN}`, 'content-type': 'application/json' },
      body: '{"overlap":"24h"}',
    });
    const { secret, previous_secret_until } = (await response.json()) as Record<string, string>;
    expect(previous_secret_until).toBeNull();
    const worker = ownProcess('worker', { ...env, LOG_LEVEL: 'info' });
    await worker.ready;
    const [delivery] = await receiver.received(1, isDelivery);
    const header = String(delivery!.headers['service-signature']);
    const nowS = Math.floor(Date.now() / 1000);
    expect(await isSigned({ header, secret: secret!, body: delivery!.body, nowS })).toBe(true);
  });
});

describe('a session that began under the old key', () => {
  it('is valid at a console that has the new key first, and not at one that has the new key alone', async () => {
    const before = await ownWorld({ workers: 0 });
    const signedIn = await fetch(`${before.consoleUrl}/v1/session`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ token: OPERATOR_TOKEN }),
    });
    const [cookie = ''] = String(signedIn.headers.get('set-cookie')).split(';');
    const statusWith = async (keys: Buffer[]) => {
      const text = keys.map((key) => key.toString('base64')).join(',');
      const { consoleUrl } = await ownWorld({
        workers: 0,
        env: { KEY_PREFIX: before.prefix, SECRET_ENCRYPTION_KEY: text },
      });
      return (await fetch(`${consoleUrl}/v1/subscriptions`, { headers: { cookie } })).status;
    };
    expect(await statusWith([newer, older])).toBe(200);
    expect(await statusWith([newer])).toBe(401);
  });
});

describe('a sealed secret copied into another record', () => {
  it('is not opened there, even if it was opened for its owner before', () => {
    const box = createSecretBox([older]);
    const sign = createRequestSigner(box);
    const sealedSecret = box.seal('whsec_a', 'sub_a');
    const attempt = {
      kind: 'attempt',
      attemptNumber: 1,
      event: 'evt/s',
      eventType: 'session.created',
      environment: 'sandbox',
      createdAtMs: 0,
      url: 'http://127.0.0.1/',
      sealedSecret,
      previousSealedSecret: null,
      previousSecretUntilMs: 0,
    } as unknown as Parameters<typeof sign>[1];
    const event = { id: 'evt', body: '{}' };
    expect(() => sign('dlv_1', { ...attempt, subscriptionId: 'sub_a' }, event, 0)).not.toThrow();
    expect(() => sign('dlv_2', { ...attempt, subscriptionId: 'sub_b' }, event, 0)).toThrow(/sub_b/);
  });
});
