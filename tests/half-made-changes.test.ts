/** What operators are told of a change of which Redis refuses a part, and that the call may be repeated. */
import { expect, it } from '@jest/globals';
import { partitionOf, subscriptionIdOfKey } from '@posthorn/core';
import { eventually } from '@posthorn/testing';
import { ownClient } from './own.ts';
import { redisServer, system } from './redis-servers.ts';
import { sampleEvent } from './world.ts';

const PARTITIONS = 3;
/** A key whose subscription is in each partition. */
const KEYS = Array.from({ length: PARTITIONS }, (_, partition) => {
  for (let i = 0; ; i++) if (partitionOf(subscriptionIdOfKey(`key-${i}`), PARTITIONS) === partition) return `key-${i}`;
});
const IDS = KEYS.map(subscriptionIdOfKey);

/** Posthorn with an address in each partition, and a way to refuse what the console does in the last one. */
async function partlyRefused() {
  const redis = await redisServer(['--user', 'console', 'on', 'nopass', '~*', '&*', '+@all']);
  const asConsole = redis.url.replace('redis://', 'redis://console:x@');
  const [ingest, worker] = [{ REDIS_URL: redis.url }, { REDIS_URL: redis.url }];
  const env = { REDIS_URL: asConsole, PARTITIONS: String(PARTITIONS), OPERATOR_RATE_LIMIT: '0' };
  const posthorn = await system(env, { ingest, worker });
  const { operate, to } = posthorn;
  for (const key of KEYS) {
    const body = { key, url: `${to.url}${key}`, event_types: 'all', environment: 'both' };
    const { id } = (await operate('POST', '/v1/subscriptions', body)).body;
    await operate('POST', `/v1/subscriptions/${id}/validate`);
  }
  const client = ownClient({ REDIS_URL: redis.url });
  const others = ['~posthorn:{0}*', '~posthorn:{1}*', '~posthorn:[^{]*'];
  return {
    ...posthorn,
    /** `rights`: what remains in the last partition. */
    refuse: (...rights: string[]) => client.call('ACL', 'SETUSER', 'console', 'resetkeys', ...others, ...rights),
    allow: () => client.call('ACL', 'SETUSER', 'console', 'allkeys'),
  };
}
const READ_ONLY = '%R~posthorn:{2}*';

it('a bulk resume says how many addresses it has resumed, and a repeat resumes the others', async () => {
  const { operate, refuse, allow } = await partlyRefused();
  for (const id of IDS) await operate('POST', `/v1/subscriptions/${id}/pause`);
  const resume = () => operate('POST', '/v1/subscriptions/resume', { subscription_ids: IDS });
  await refuse(READ_ONLY);
  expect(await resume()).toMatchObject({
    status: 503,
    body: {
      code: 'unavailable',
      detail: expect.stringMatching(/ The call has resumed at least 2 of 3 addresses\. Repeat it: it leaves these as/),
    },
  });
  await allow();
  const { data } = (await resume()).body;
  expect(data.map(({ result }: { result: string }) => result)).toEqual(['unchanged', 'unchanged', 'resumed']);
});

it('a bulk try-now says how many deliveries it tries, and a repeat tries the others', async () => {
  const { operate, publish, to, deliveries, refuse, allow } = await partlyRefused();
  to.answerWith(500);
  await publish(sampleEvent());
  await eventually('all to wait', async () => (await deliveries('status=waiting_for_retry')).length === 4);
  // Their second attempts hang.
  to.answerWith(() => undefined);
  const inPartitions = async (wanted: readonly number[]) => {
    const all: { subscription_id: string }[] = await deliveries('status=waiting_for_retry');
    return all.filter(({ subscription_id: id }) => wanted.includes(partitionOf(id, PARTITIONS))).length;
  };
  const [first, last] = [await inPartitions([0, 1]), await inPartitions([2])];
  await refuse(READ_ONLY);
  const told = `At least ${first} of 4 deliveries are tried now. Repeat the call for the rest: of these, it tries again only those that have failed by then.`;
  expect(await operate('POST', '/v1/deliveries/try-now', {})).toMatchObject({
    status: 503,
    body: { detail: expect.stringContaining(told) },
  });
  await allow();
  expect((await operate('POST', '/v1/deliveries/try-now', {})).body.data).toHaveLength(last);
});

it('a change of topics, or a deletion, that cannot be announced is said to be made', async () => {
  const { operate, refuse, allow } = await partlyRefused();
  const path = `/v1/subscriptions/${IDS[0]}`;
  await refuse(READ_ONLY);
  expect(await operate('PATCH', path, { event_types: ['session.expired'] })).toMatchObject({
    status: 503,
    body: { detail: expect.stringMatching(/ The change was made\. .* There is nothing to repeat\.$/) },
  });
  expect((await operate('GET', path)).body.event_types).toEqual(['session.expired']);
  expect(await operate('DELETE', path)).toMatchObject({
    status: 503,
    body: { detail: expect.stringMatching(/ The subscription is deleted\. .* There is nothing to repeat\.$/) },
  });
  await allow();
  expect((await operate('GET', path)).status).toBe(404);
});

it('a batch whose cancellation is stored is said to be cancelled, also if its progress cannot be read', async () => {
  const { operate, refuse, allow } = await partlyRefused();
  const { id } = (await operate('POST', '/v1/replays', { subscription_ids: IDS })).body;
  await refuse();
  expect(await operate('POST', `/v1/replay-batches/${id}/cancel`)).toMatchObject({
    status: 503,
    body: { detail: expect.stringMatching(/ The batch is cancelled\. The call may be repeated\.$/) },
  });
  await allow();
  expect((await operate('POST', `/v1/replay-batches/${id}/cancel`)).status).toBe(200);
});

it('an erasure is cancelled also if what it has found cannot be forgotten', async () => {
  const { operate, refuse } = await partlyRefused();
  const { id } = (await operate('POST', '/v1/erasures', { session_id: 'a' })).body;
  await refuse(READ_ONLY);
  expect(await operate('POST', `/v1/erasures/${id}/cancel`)).toMatchObject({
    status: 200,
    body: { status: 'cancelled' },
  });
});

it('a change is said to have changed nothing if Redis refused its first script, or what it read before', async () => {
  const { operate, refuse } = await partlyRefused();
  const pause = `/v1/subscriptions/${IDS[2]}/pause`;
  await refuse();
  const nothing = {
    status: 503,
    body: { code: 'not_changed', detail: expect.stringMatching(/Nothing was changed\.$/) },
  };
  expect(await operate('POST', pause)).toMatchObject(nothing);
});

it('a bulk replay that a full Redis refuses is said to have changed nothing', async () => {
  const redis = await redisServer();
  const { operate } = await system({ REDIS_URL: redis.url });
  const { data } = (await operate('GET', '/v1/subscriptions')).body;
  const client = ownClient({ REDIS_URL: redis.url });
  await client.config('SET', 'maxmemory', '1mb');
  const refused = await operate('POST', '/v1/replays', { subscription_id: data[0].id });
  await client.config('SET', 'maxmemory', '0');
  expect(refused).toMatchObject({ status: 503, body: { code: 'not_changed' } });
});

it('a change that fails because of a bug is said to be possibly made', async () => {
  const redis = await redisServer();
  const { operate } = await system({ REDIS_URL: redis.url });
  const { data } = (await operate('GET', '/v1/subscriptions')).body;
  // As a bug would leave it.
  await ownClient({ REDIS_URL: redis.url }).set(`posthorn:{0}:held:${data[0].id}`, 'no sorted set');
  const told = expect.stringMatching(/ The change may have been made: look before you repeat it\.$/);
  const pause = `/v1/subscriptions/${data[0].id}/pause`;
  expect(await operate('POST', pause)).toMatchObject({ status: 500, body: { code: 'internal', detail: told } });
});
