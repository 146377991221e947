/** The directory of subscriptions: what a search finds, in which order, and that it follows every change. */
import { describe, expect, it } from '@jest/globals';
import { HEALTH_STATES, HOUR_MS, SUBSCRIPTION_SORTS } from '@posthorn/core';
import { MAX_CHANGES } from '../constants.ts';
import {
  BadCursor,
  changeSubscription,
  createDirectory,
  type Directory,
  deleteSubscription,
  readNames,
  type StoredSubscription,
  type SubscriptionQuery,
} from '../index.ts';
import {
  failingKey,
  healthKey,
  partitionPrefix,
  prefixOfSubscription,
  subscriptionChangesKey,
  subscriptionKey,
} from '../keys.ts';
import { attempt, deliver, failure, report, store, subscribe, time } from '../test-deliveries.ts';

async function idsOf(directory: Directory, query: Partial<SubscriptionQuery> = {}): Promise<string[]> {
  const { items, total } = await directory.find({ sort: 'newest', ...query }, { limit: 250 });
  expect(total).toBe(items.length);
  return items.map(({ id }) => id);
}

describe('a search', () => {
  it('finds a host, a part of the url or the description, and the beginning of the id, in upper or lower case', async () => {
    const acme = await subscribe({ url: 'https://hooks.acme.example/In?tenant=7', description: 'Acme, São Paulo' });
    const other = await subscribe({ url: 'https://other.example/acm', description: '' });
    const directory = createDirectory(store);
    for (const q of [
      'hooks.acme',
      'HTTPS://HOOKS.',
      '/in?TENANT',
      'são paulo',
      'paulo acme',
      acme.id,
      acme.id.slice(4, 20),
    ])
      expect([q, await idsOf(directory, { q })]).toEqual([q, [acme.id]]);
    expect(await idsOf(directory, { q: ' ' })).toHaveLength(2);
    expect(await idsOf(directory, { q: 'acm' })).toHaveLength(2);
    // No word spans two fields, nothing is a pattern, and what is further back in an id is there by chance.
    for (const q of ['tenant=7acme', 'hooks%', '.*', `x${other.id}`, other.id.slice(1), other.id.slice(5)])
      expect(await idsOf(directory, { q })).toEqual([]);
  });

  it('filters by status and environment, also together with words', async () => {
    const sandbox = await subscribe({ environment: 'sandbox', description: 'one' });
    const paused = await subscribe({ status: 'paused', description: 'one' });
    const directory = createDirectory(store);
    expect((await idsOf(directory)).sort()).toEqual([sandbox.id, paused.id].sort());
    expect(await idsOf(directory, { status: 'paused' })).toEqual([paused.id]);
    expect(await idsOf(directory, { environment: 'sandbox', q: 'one' })).toEqual([sandbox.id]);
    expect(await idsOf(directory, { environment: 'sandbox', status: 'paused' })).toEqual([]);
  });

  it.each(['newest', 'url'] as const)('returns everything once, page by page, in the order %s', async (sort) => {
    const made: { id: string; url: string; createdAtMs: number }[] = [];
    for (let i = 0; i < 23; i++) {
      if (i % 3 === 0) time.nowMs += 1;
      const scheme = i % 2 === 0 ? 'http' : 'https';
      // The last five share everything that counts for the order.
      made.push(
        await subscribe({ url: `${scheme}://h${i < 18 ? (i * 7) % 11 : 'same'}.example/${'x'.repeat(200)}${i}` }),
      );
    }
    const hostOf = ({ url }: { url: string }) => new URL(url).host;
    const byCode = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);
    const expected =
      sort === 'newest'
        ? made.sort((a, b) => b.createdAtMs - a.createdAtMs || byCode(b.id, a.id))
        : made.sort((a, b) => byCode(hostOf(a), hostOf(b)) || byCode(a.id, b.id));
    const directory = createDirectory(store);
    const found: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await directory.find({ sort }, { limit: 4, cursor });
      expect(page.total).toBe(23);
      found.push(...page.items.map(({ id }) => id));
      cursor = page.nextCursor ?? undefined;
    } while (cursor !== undefined);
    expect(found).toEqual(expected.map(({ id }) => id));
  });

  it('orders by what is worst: failing by the number of failures and since when, then paused, then the rest', async () => {
    const made = new Map<string, { id: string; url: string }>();
    const add = async (name: string, attempts: string, status: 'active' | 'paused' = 'active') => {
      made.set(name, await subscribe({ url: `https://${name}.example/` }));
      time.nowMs += 1;
      if (attempts !== '') await report(made.get(name)!, attempts);
      if (status === 'paused') await changeSubscription(store, made.get(name)!.id, (now) => ({ ...now, status }));
    };
    await add('well', '..');
    await add('paused', '.', 'paused');
    await add('failing-long', 'x'.repeat(10));
    await add('failing-short', 'x'.repeat(99));
    await add('failing-often', 'x'.repeat(100));
    await add('failing-and-paused', 'x'.repeat(101), 'paused');
    await add('unknown', '');
    await add('paused-later', '', 'paused');
    const directory = createDirectory(store);
    const nameOf = new Map(Array.from(made, ([name, { id }]) => [id, name]));
    const worst = [
      'failing-often',
      'failing-and-paused',
      'failing-long',
      'failing-short',
      'paused-later',
      'paused',
      'unknown',
      'well',
    ];
    expect((await idsOf(directory, { sort: 'worst' })).map((id) => nameOf.get(id))).toEqual(worst);
    const paged: (string | undefined)[] = [];
    for (let cursor: string | undefined; paged.length < worst.length; ) {
      const page = await directory.find({ sort: 'worst' }, { limit: 1, cursor });
      paged.push(...page.items.map(({ id }) => nameOf.get(id)));
      cursor = page.nextCursor ?? undefined;
    }
    expect(paged).toEqual(worst);
    expect((await idsOf(directory, { health: 'failing', status: 'paused' })).map((id) => nameOf.get(id))).toEqual([
      'failing-and-paused',
    ]);
    // Nine times as many failures do not move it, one more does.
    await report(made.get('failing-short')!, 'x');
    expect(nameOf.get((await idsOf(directory, { sort: 'worst' }))[0]!)).toBe('failing-short');
  });

  it('returns everything once if more match than are sorted, with words and without, while some are created and deleted', async () => {
    const make = (i: number) =>
      subscribe({
        url: `https://h${(i * 37) % 1_300}.example/${i % 10 === 0 ? 'tenth' : 'in'}`,
        createdAtMs: 1_000 + i,
      });
    const made = await Promise.all(Array.from({ length: 1_300 }, (_, i) => make(i)));
    const directory = createDirectory(store);
    for (const sort of SUBSCRIPTION_SORTS) {
      for (const q of ['', 'example/in']) {
        const expected = made.filter(({ url }) => url.includes(q)).map(({ id }) => id);
        const found: string[] = [];
        let cursor: string | undefined;
        let passing: StoredSubscription | undefined;
        do {
          const page = await directory.find({ sort, q }, { limit: 250, cursor });
          expect(page.total).toBe(expected.length + (passing ? 1 : 0));
          found.push(...page.items.map(({ id }) => id).filter((id) => id !== passing?.id));
          cursor = page.nextCursor ?? undefined;
          if (passing) await deleteSubscription(store, passing.id, time.nowMs, { operator: 'tests' });
          passing = passing ? undefined : await make(651);
        } while (cursor !== undefined);
        if (passing) await deleteSubscription(store, passing.id, time.nowMs, { operator: 'tests' });
        expect(found).toHaveLength(expected.length);
        expect(new Set(found)).toEqual(new Set(expected));
      }
    }
  });

  it('continues after a subscription that was deleted meanwhile, and refuses a cursor of another list', async () => {
    const urls = ['https://a.example/', 'https://b.example/', 'https://c.example/'];
    const made = [];
    for (const url of urls) made.push(await subscribe({ url }));
    const directory = createDirectory(store);
    const first = await directory.find({ sort: 'url' }, { limit: 2 });
    await deleteSubscription(store, made[1]!.id, time.nowMs, { operator: 'tests' });
    const cursor = first.nextCursor!;
    expect((await directory.find({ sort: 'url' }, { limit: 2, cursor })).items.map(({ id }) => id)).toEqual([
      made[2]!.id,
    ]);
    for (const sort of ['newest', 'url', 'worst'] as const) {
      const bad = directory.find({ sort }, { limit: 2, cursor: 'bm90aGluZw' });
      await expect(bad).rejects.toThrow(BadCursor);
    }
    for (const sort of ['newest', 'worst'] as const)
      await expect(directory.find({ sort }, { limit: 2, cursor })).rejects.toThrow(BadCursor);
  });
});

describe('the directory', () => {
  it('follows what is created, changed, paused by a worker and deleted, in every order', async () => {
    const directory = createDirectory(store);
    expect(await idsOf(directory)).toEqual([]);
    const a = await subscribe({ url: 'https://a.example/' });
    const b = await subscribe({ url: 'https://b.example/' });
    expect(await idsOf(directory, { sort: 'url' })).toEqual([a.id, b.id]);
    await changeSubscription(store, a.id, (now) => ({ ...now, url: 'https://z.example/', description: 'moved' }));
    expect(await idsOf(directory, { sort: 'url' })).toEqual([b.id, a.id]);
    expect(await idsOf(directory, { q: 'a.example' })).toEqual([]);
    expect(await idsOf(directory, { q: 'z.example moved' })).toEqual([a.id]);
    const [made] = await deliver([b.id]);
    await attempt(made!.deliveryId, 1, failure, 1);
    expect(await idsOf(directory, { status: 'paused' })).toEqual([b.id]);
    await deleteSubscription(store, b.id, time.nowMs, { operator: 'tests' });
    expect(await idsOf(directory)).toEqual([a.id]);
    expect(await idsOf(directory, { status: 'paused', sort: 'url' })).toEqual([]);
  });

  it('follows the health of an address: its first attempt, a failing period, its end, and a new url', async () => {
    const directory = createDirectory(store);
    const one = await subscribe();
    const states = async () => {
      const all = await Promise.all(
        HEALTH_STATES.map(async (health) => [health, (await idsOf(directory, { health })).length] as const),
      );
      return all.flatMap(([health, count]) => (count === 0 ? [] : [health]));
    };
    expect(await states()).toEqual(['unknown']);
    await report(one, 'xxxxxxxxx');
    expect(await states()).toEqual(['healthy']);
    await report(one, 'x');
    expect(await states()).toEqual(['failing']);
    await report(one, '..........');
    expect(await states()).toEqual(['healthy']);
    await report(one, 'xxxxxxxxxx');
    expect(await states()).toEqual(['failing']);
    await changeSubscription(store, one.id, (now) => ({ ...now, url: 'https://moved.example/' }));
    expect(await states()).toEqual(['unknown']);
  });

  it('reads nothing for attempts that change neither the health nor the order', async () => {
    const one = await subscribe();
    const stream = subscriptionChangesKey(prefixOfSubscription(store, one.id));
    const announced = async (attempts: string) => {
      const before = await store.redis.xlen(stream);
      for (const some of attempts.match(/.{1,5}/g) ?? []) await report(one, some);
      return (await store.redis.xlen(stream)) - before;
    };
    expect(await announced('.....')).toBe(1);
    expect(await announced('.'.repeat(50))).toBe(0);
    expect(await announced('x'.repeat(10))).toBe(1);
    expect(await announced('x'.repeat(85))).toBe(0);
    expect(await announced('x'.repeat(5))).toBe(1);
    expect(await announced('.'.repeat(5))).toBe(0);
    expect(await announced('.'.repeat(5))).toBe(1);
    expect(await announced('.x'.repeat(4))).toBe(0);
  });

  it('finds what was stored before the search began, while other searches run', async () => {
    const directory = createDirectory(store);
    await Promise.all(
      Array.from({ length: 30 }, async (_, i) => {
        const { id } = await subscribe({ description: `number ${i}.` });
        expect(await idsOf(directory, { q: `number ${i}.`, sort: i % 2 === 0 ? 'url' : 'newest' })).toContain(id);
      }),
    );
    expect(await idsOf(directory)).toHaveLength(30);
  });

  it.each([
    ['it has been trimmed beyond what was read', 'trimmed' as const],
    ['it is lost', 'lost' as const],
    ['it was empty, and is at its limit now', 'full' as const],
  ])('loads everything again from a stream of changes if %s', async (_, what) => {
    const directory = createDirectory(store);
    const streams = Array.from({ length: store.partitions }, (_, i) =>
      subscriptionChangesKey(partitionPrefix(store, i)),
    );
    const old = await subscribe({ description: 'old' });
    const ofOld = subscriptionChangesKey(prefixOfSubscription(store, old.id));
    if (what === 'full') await store.redis.del(ofOld);
    expect(await idsOf(directory)).toEqual([old.id]);
    const change = (description: string) => changeSubscription(store, old.id, (now) => ({ ...now, description }));
    await change('new');
    if (what === 'lost') for (const key of streams) await store.redis.del(key);
    else await store.redis.xtrim(ofOld, 'MAXLEN', 0);
    const added = { trimmed: 1, full: MAX_CHANGES, lost: 0 }[what];
    await Promise.all(Array.from({ length: added }, (_, i) => store.redis.xadd(ofOld, '*', 's', `sub_${i}`)));
    expect(await idsOf(directory, { q: 'new' })).toEqual([old.id]);
    await change('newest');
    expect(await idsOf(directory, { q: 'newest' })).toEqual([old.id]);
  });

  it('notices by the counts, and after an hour in any case, what nobody announced', async () => {
    let nowMs = 0;
    const directory = createDirectory(store, () => nowMs);
    const [a, b] = [await subscribe(), await subscribe()];
    expect(await idsOf(directory)).toHaveLength(2);
    const prefix = prefixOfSubscription(store, b.id);
    await store.redis.hset(healthKey(prefix, b.id), 'w', '1:0:10 ', 'since', 600_000);
    await store.redis.zadd(failingKey(prefix), 600_000, b.id);
    expect(await idsOf(directory, { health: 'failing' })).toEqual([]);
    nowMs += 61_000;
    expect(await idsOf(directory, { health: 'failing' })).toEqual([b.id]);
    const silently = async (id: string, work: () => Promise<unknown>) => {
      const key = subscriptionChangesKey(prefixOfSubscription(store, id));
      const [last] = await store.redis.xrevrange(key, '+', '-', 'COUNT', 1);
      await work();
      const [added] = await store.redis.xrevrange(key, '+', '-', 'COUNT', 1);
      if (added![0] !== last![0]) await store.redis.xdel(key, added![0]);
    };
    await silently(a.id, () => deleteSubscription(store, a.id, time.nowMs, { operator: 'tests' }));
    nowMs += 61_000;
    expect((await directory.find({ sort: 'newest' }, { limit: 9 })).total).toBe(1);
    await store.redis.hset(subscriptionKey(prefix, b.id), 'url', 'https://moved.example/');
    expect(await idsOf(directory, { q: 'moved' })).toEqual([]);
    nowMs += HOUR_MS + 1;
    expect(await idsOf(directory, { q: 'moved' })).toEqual([b.id]);
  });

  it('keeps what it has read when one partition fails, and goes on with the next search', async () => {
    const directory = createDirectory(store);
    const { id } = await subscribe({ description: 'here' });
    const broken = subscriptionChangesKey(
      partitionPrefix(store, prefixOfSubscription(store, id) === partitionPrefix(store, 0) ? 1 : 0),
    );
    await store.redis.set(broken, 'no stream');
    await expect(idsOf(directory)).rejects.toThrow('WRONGTYPE');
    await store.redis.del(broken);
    expect(await idsOf(directory, { q: 'here' })).toEqual([id]);
  });
});

it('names are read by id; a deleted subscription and an unknown one have none', async () => {
  const [a, gone] = [await subscribe({ description: 'Acme' }), await subscribe()];
  await deleteSubscription(store, gone.id, time.nowMs, { operator: 'tests' });
  const names = await readNames(store, [gone.id, a.id, 'sub_0000000000000000000000']);
  expect(names).toEqual([{ id: a.id, url: 'https://example.com/', description: 'Acme' }]);
});
