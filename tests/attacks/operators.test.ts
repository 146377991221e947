/**
 * What an operator's tools may send by mistake or on purpose: cursors of other lists, invented cursors, times before
 * year 0.
 */
import { expect, it } from '@jest/globals';
import fc from 'fast-check';
import { ownReceiver, ownWorld } from '../own.ts';
import { sampleEvent } from '../world.ts';

it('refuses a forged cursor of any list with 422, never with 500', async () => {
  const on = await ownWorld({ env: { OPERATOR_RATE_LIMIT: '0' } });
  const to = await ownReceiver();
  const { id } = await on.subscribe(to.url);
  for (let i = 0; i < 3; i++) await on.subscribe(to.url, { event_types: ['session.expired'] });
  for (let i = 0; i < 4; i++) await on.publish(sampleEvent({ id: `event-${i}` }));
  for (let i = 0; i < 3; i++) await on.operate('POST', '/v1/replays', { subscription_id: id });
  const statuses = ['pending', 'waiting_for_retry', 'held', 'succeeded', 'failed'];
  const lists = [
    '/v1/deliveries?',
    '/v1/deliveries?event_id=event-1&',
    `/v1/deliveries?subscription_id=${id}&`,
    ...statuses.flatMap((status) => [
      `/v1/deliveries?status=${status}&`,
      `/v1/deliveries?subscription_id=${id}&status=${status}&`,
    ]),
    '/v1/subscriptions?',
    '/v1/subscriptions?status=active&',
    '/v1/replays?',
    `/v1/replays?subscription_id=${id}&`,
    '/v1/audit?',
  ];
  const own = await Promise.all(
    lists.map(async (list) => (await on.operate('GET', `${list}limit=1`)).body.next_cursor as string | null),
  );
  const real = own.filter((cursor) => cursor !== null);
  expect(real.length).toBeGreaterThan(4);
  const encode = (text: string) => Buffer.from(text).toString('base64url');
  const times = ['0', String(Date.now()), '9007199254740992'];
  const ids = [
    '0',
    '5',
    '18446744073709551616',
    '9'.repeat(64),
    'x',
    '-',
    '0-0',
    '00000000-000',
    '-1',
    id,
    'sub_',
    `dlv_${'A'.repeat(26)}`,
    `rpl_${'_'.repeat(26)}`,
  ];
  const forged = [
    ...times.flatMap((ms) => ids.map((one) => encode(`${ms} ${one}`))),
    '',
    'AAAA',
    '%00',
    'x'.repeat(200),
  ];
  const spans = ['', '&to=0000-01-01T00:00:00Z', '&from=0000-01-01T00:00:00Z', '&from=9999-12-31T23:59:59Z'];
  const expectClear = async (list: string, query: string) => {
    const { status, body } = await on.operate('GET', `${list}${query}`);
    if (status !== 200 && status !== 422) throw new Error(`${list}${query} returned ${status}`);
    if (status === 422) expect(body.errors[0].path).toMatch(/^(cursor|from|to)$/);
    return status;
  };
  for (const list of lists) {
    const queries = [
      ...[...real, ...forged].map((cursor) => `limit=2&cursor=${cursor}`),
      ...spans.flatMap((span) => [`limit=2${span}`, `limit=2${span}&cursor=${real[0]}`]),
    ];
    await Promise.all(queries.map((query) => expectClear(list, query)));
  }
  const random = fc.tuple(
    fc.constantFrom(...lists),
    fc.oneof(fc.string({ maxLength: 40 }).map(encode), fc.string({ maxLength: 40 })),
  );
  await fc.assert(
    fc.asyncProperty(random, async ([list, cursor]) => {
      await expectClear(list, `cursor=${encodeURIComponent(cursor)}`);
    }),
    { numRuns: 200 },
  );
  // Each list accepts its own cursors, and none accepts a cursor of another kind of list.
  for (const [i, list] of lists.entries())
    if (own[i] !== null) expect(await expectClear(list, `cursor=${own[i]}`)).toBe(200);
  for (const [list, cursor] of [
    ['/v1/subscriptions?', own[0]],
    ['/v1/deliveries?', own[lists.indexOf('/v1/subscriptions?')]],
  ] as const)
    expect(await expectClear(list, `cursor=${cursor}`)).toBe(422);
});
