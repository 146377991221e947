/** Names whose name servers never respond: they do not delay deliveries to other addresses or the console. */
import type { ServerResponse } from 'node:http';
import { describe, expect, it } from '@jest/globals';
import { eventually, isDelivery, startNameServer } from '@posthorn/testing';
import { atEnd, ownReceiver, ownWorld } from './own.ts';
import { sampleEvent, type World } from './world.ts';

/**
 * Names that end in `silent.test` lead to the receiver until their name server stops responding; all others always do.
 */
async function startSilentDomain() {
  let isSilent = false;
  const names = await startNameServer((name) => (isSilent && name.endsWith('silent.test') ? 'silent' : ['127.0.0.1']));
  atEnd(() => names.close());
  const receiver = await ownReceiver();
  const world = await ownWorld({ env: { DNS_SERVERS: names.address } });
  return {
    world,
    names,
    receiver,
    urlAt: (host: string, path: string) => `http://${host}:${receiver.port}/${path}`,
    fallSilent: () => {
      isSilent = true;
      names.queries.length = 0;
    },
  };
}

const attemptsOf = async (world: World, subscriptionId: string) =>
  (await world.deliveries(`subscription_id=${subscriptionId}&limit=200`)) as {
    status: string;
    attempt_count: number;
  }[];

describe('a silent name server', () => {
  it('costs a healthy address no attempt, even with 90 subscriptions behind it', async () => {
    const { world, names, receiver, urlAt, fallSilent } = await startSilentDomain();
    const hanging = await Promise.all(
      Array.from({ length: 90 }, (_, i) =>
        world.subscribe(urlAt(`host-${i}.silent.test`, 'hanging'), { event_types: ['session.declined'] }),
      ),
    );
    expect(new Set(hanging.map(({ status }) => status))).toEqual(new Set(['active']));
    const healthy = await world.subscribe(urlAt('healthy.test', 'healthy'), { event_types: ['session.approved'] });
    fallSilent();
    await world.publish(sampleEvent({ type: 'session.declined' }));
    await names.asked(180, 'silent.test');
    const events = Array.from({ length: 101 }, (_, i) => sampleEvent({ data: { id: `s-${i}`, status: 'approved' } }));
    expect((await world.publishBatch(events)).status).toBe(200);
    await receiver.received(101, (request) => isDelivery(request) && request.path === '/healthy');
    const attempts = await eventually('all recorded', async () => {
      const made = await attemptsOf(world, healthy.id);
      return made.every(({ status }) => status !== 'pending') && made;
    });
    expect(attempts).toHaveLength(101);
    for (const made of attempts) expect(made).toMatchObject({ status: 'succeeded', attempt_count: 1 });
    const [first] = await eventually('a hanging one is recorded', async () => {
      const made = await attemptsOf(world, hanging[0]!.id);
      return made[0]?.status === 'waiting_for_retry' && (made as { status: string; id?: string }[]);
    });
    expect((await world.delivery(first!.id!)).attempts[0]).toMatchObject({ outcome: 'failed', error: 'dns' });
  });

  it('delays neither the page nor other validations while its addresses are validated', async () => {
    const { world, names, urlAt, fallSilent } = await startSilentDomain();
    const created = async (host: string) =>
      (
        await world.operate('POST', '/v1/subscriptions', {
          url: urlAt(host, 'x'),
          event_types: 'all',
          environment: 'both',
        })
      ).body.id as string;
    const ids = await Promise.all(Array.from({ length: 6 }, (_, i) => created(`host-${i}.silent.test`)));
    const healthy = await created('healthy.test');
    fallSilent();
    const validations = ids.map((id) => world.operate('POST', `/v1/subscriptions/${id}/validate`));
    await names.asked(12, 'silent.test');
    const page = await fetch(`${world.consoleUrl}/openapi.json`);
    expect(page.status).toBe(200);
    const validated = await world.operate('POST', `/v1/subscriptions/${healthy}/validate`);
    expect(validated.body).toMatchObject({ status: 'active' });
    for (const { status, body } of await Promise.all(validations)) {
      expect(status).toBe(200);
      expect(body).toMatchObject({ status: 'awaiting_validation', status_reason: 'unreachable' });
    }
  });
});

describe('validations in flight', () => {
  it('are limited, so that they leave connections to others', async () => {
    const responses: ServerResponse[] = [];
    const receiver = await ownReceiver((_request, response) => void responses.push(response));
    const world = await ownWorld();
    const ids = await Promise.all(
      Array.from({ length: 101 }, async (_, i) => {
        const fields = { url: `${receiver.url}/${i}`, event_types: 'all', environment: 'both' };
        return (await world.operate('POST', '/v1/subscriptions', fields)).body.id as string;
      }),
    );
    const validate = (id: string) => world.operate('POST', `/v1/subscriptions/${id}/validate`);
    const waiting = ids.slice(1).map(validate);
    await receiver.received(100);
    expect(await validate(ids[0]!)).toMatchObject({ status: 429, body: { code: 'too_many_requests' } });
    for (const response of responses) response.end();
    for (const { status } of await Promise.all(waiting)) expect(status).toBe(200);
    receiver.answerWith(200);
    expect(await validate(ids[0]!)).toMatchObject({ status: 200, body: { status: 'active' } });
  });
});
