/** Lists in which a record can't be read: it hides no other one, and what works on records does not pass over it. */
import { describe, expect, it } from '@jest/globals';
import {
  appendAudit,
  createDirectory,
  type Directory,
  listAudit,
  listDeliveries,
  listErasures,
  listReplays,
  type Page,
  startErasure,
} from '../index.ts';
import {
  auditKey,
  deliveryKey,
  erasureKey,
  healthKey,
  partitionPrefix,
  prefixOfId,
  prefixOfSubscription,
  replayKey,
  subscriptionKey,
} from '../keys.ts';
import { failed, start } from '../replays/test-replays.ts';
import { deliver, event, report, store, subscribe, time } from '../test-deliveries.ts';

const SHOWN = { leaveOutUnreadable: true };
type List = (request: {
  limit: number;
  cursor?: string;
  leaveOutUnreadable?: boolean;
}) => Promise<Page<{ id: string }>>;

/** All pages of a list: the ids of what can be read and of what can't, and the size of each page. */
async function readAll(list: List, limit: number) {
  const all = { items: [] as string[], unreadable: [] as string[], sizes: [] as number[] };
  for (let cursor: string | undefined; ; ) {
    const page = await list({ limit, ...(cursor !== undefined && { cursor }), ...SHOWN });
    all.items.push(...page.items.map(({ id }) => id));
    all.unreadable.push(...page.unreadable.map(({ id }) => id));
    all.sizes.push(page.items.length + page.unreadable.length);
    if (page.nextCursor === null) return all;
    cursor = page.nextCursor;
  }
}

/** Checks each size of page. `ids` are those of the list, newest first; `broken` those of them that can't be read. */
async function expectAllBut(list: List, ids: string[], broken: string[]) {
  const items = ids.filter((id) => !broken.includes(id));
  const unreadable = ids.filter((id) => broken.includes(id));
  for (let limit = 1; limit <= ids.length + 1; limit++) {
    const all = await readAll(list, limit);
    expect(all).toMatchObject({ items, unreadable });
    expect(Math.max(...all.sizes)).toBeLessThanOrEqual(limit);
  }
  await expect(list({ limit: ids.length })).rejects.toThrow(/The record of .+ can't be read: /);
}

describe('a list with records that cannot be read', () => {
  const wrong = {
    'another type': async (key: string) => {
      await store.redis.del(key);
      await store.redis.set(key, 'wrong');
    },
    'a status of a newer release': (key: string) => store.redis.hset(key, 'st', '77'),
    'a time that is none': (key: string) => store.redis.hset(key, 'c', 'soon'),
    'a time of an earlier attempt that is none': (key: string) =>
      store.redis.hset(key, { n: '2', a1: '!,7', a2: '14,7,500,1' }),
    'a type of event of a newer release': (key: string) => store.redis.hset(key, 'k', '999'),
  };
  it.each(Object.entries(wrong))('shows all other deliveries beside some with %s', async (_, spoil) => {
    const { id: subscriptionId } = await subscribe();
    const ids: string[] = [];
    for (let i = 0; i < 7; i++, time.nowMs += 10) ids.unshift(await failed(subscriptionId));
    const broken = [0, 3, 4, 6].map((i) => ids[i]!);
    for (const id of broken) await spoil(deliveryKey(prefixOfId(store, id), id));
    for (const filter of [{}, { subscriptionId }, { status: 'failed' }, { subscriptionId, status: 'failed' }] as const)
      await expectAllBut((request) => listDeliveries(store, filter, request, time.nowMs), ids, broken);
  });
  it('shows all other deliveries of an event', async () => {
    const addresses = [await subscribe(), await subscribe(), await subscribe()];
    const sent = event();
    await deliver(
      addresses.map(({ id }) => id),
      sent,
    );
    const list: List = (request) => listDeliveries(store, { eventId: sent.id }, request);
    const { items: ids } = await readAll(list, 10);
    expect(ids).toHaveLength(3);
    await wrong['another type'](deliveryKey(prefixOfId(store, ids[1]!), ids[1]!));
    await expectAllBut(list, ids, [ids[1]!]);
  });
  it('shows all other bulk replays', async () => {
    const { id: subscriptionId } = await subscribe();
    const ids: string[] = [];
    for (let i = 0; i < 4; i++, time.nowMs += 10) ids.unshift(await start(subscriptionId));
    const [first, second] = [ids[0]!, ids[2]!];
    await store.redis.hset(replayKey(prefixOfId(store, first), first), 'created_at', 'soon');
    await store.redis.hset(replayKey(prefixOfId(store, second), second), 'status', 'rewinding');
    await expectAllBut((request) => listReplays(store, {}, request), ids, [first, second]);
  });
  it('shows all other erasures', async () => {
    const request = { field: 'user_id', environment: undefined, unsent: 'end', valueHmac: 'h' } as const;
    const ids: string[] = [];
    for (let i = 0; i < 4; i++, time.nowMs += 10) {
      const options = { ...request, seal: () => 'sealed', isConfirmed: false };
      ids.unshift((await startErasure(store, options, time.nowMs, 'anna'))!.id);
    }
    const key = (id: string) => erasureKey(partitionPrefix(store, 0), id);
    await wrong['another type'](key(ids[1]!));
    await store.redis.hset(key(ids[2]!), 'status', 'resting');
    await expectAllBut((page) => listErasures(store, undefined, page), ids, [ids[1]!, ids[2]!]);
  });
  it('shows all other audit entries', async () => {
    const list: List = (request) => listAudit(store, {}, request, time.nowMs);
    const append = () => appendAudit(store, { action: 'session.started', operator: 'anna' }, time.nowMs);
    for (let i = 0; i < 4; i++, time.nowMs += 10) await append();
    const [spoiled] = (await store.redis.xadd(auditKey(partitionPrefix(store, 1)), '*', 'e', '{"action":'))!.split('-');
    time.nowMs = Number(spoiled) + 10;
    await append();
    const { items, unreadable } = await readAll(list, 250);
    expect(items).toHaveLength(5);
    expect(unreadable).toEqual([expect.stringMatching(new RegExp(`^aud_${spoiled}-`))]);
    await expectAllBut(list, [items[0]!, ...unreadable, ...items.slice(1)], unreadable);
  });
});

describe('the directory, with subscriptions that cannot be read', () => {
  const listOf =
    (directory: Directory, query: Partial<Parameters<Directory['find']>[0]> = {}): List =>
    (request) =>
      directory.find({ sort: 'newest', ...query }, request);
  it('shows all others in each order, also of those that it learns of later', async () => {
    const ids: string[] = [];
    for (let i = 0; i < 6; i++, time.nowMs += 10) ids.unshift((await subscribe()).id);
    const key = (id: string) => subscriptionKey(prefixOfSubscription(store, id), id);
    const spoil = async (id: string) => {
      await store.redis.del(key(id));
      await store.redis.set(key(id), 'wrong');
    };
    // The oldest, whose place in the lists it keeps without a time of creation.
    await spoil(ids[5]!);
    const directory = createDirectory(store);
    await expectAllBut(listOf(directory), ids, [ids[5]!]);
    await spoil(ids[2]!);
    await store.redis.hset(key(ids[4]!), 'last_validation', '{');
    const broken = [ids[2]!, ids[4]!, ids[5]!];
    for (const directoryOf of [directory, createDirectory(store)]) {
      for (const sort of ['newest', 'url', 'worst'] as const) {
        const { items, unreadable } = await readAll(listOf(directoryOf, { sort }), 2);
        expect(items.toSorted()).toEqual(ids.filter((id) => !broken.includes(id)).toSorted());
        expect(unreadable.toSorted()).toEqual(broken.toSorted());
      }
    }
    await expect(directory.find({ sort: 'newest' }, { limit: 10 })).rejects.toThrow("can't be read");
  });
  it('finds others if the health of one cannot be read, or its time of creation is none', async () => {
    const [a, b, c] = [await subscribe(), await subscribe(), await subscribe()];
    await report(a, 'xxxxxxxxxxx');
    await store.redis.hset(healthKey(prefixOfSubscription(store, a.id), a.id), 'e', '{');
    await store.redis.set(healthKey(prefixOfSubscription(store, b.id), b.id), 'wrong');
    await store.redis.hset(subscriptionKey(prefixOfSubscription(store, c.id), c.id), 'created_at', 'soon');
    for (const sort of ['newest', 'url', 'worst'] as const) {
      const { items, unreadable } = await readAll(listOf(createDirectory(store), { sort }), 1);
      expect([items.toSorted(), unreadable]).toEqual([[a.id, b.id].toSorted(), [c.id]]);
    }
  });
});
