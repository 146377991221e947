/** How events are stored: packed. */
import { describe, expect, it } from '@jest/globals';
import { eventRef } from '@posthorn/core';
import { decodeEvent, encodeEvent } from './event-record.ts';
import { prefixOfEvent } from './events.ts';
import { findEvents, loadEvent, type Store, storeEvent } from './index.ts';
import { eventKey } from './keys.ts';
import { event, store, time } from './test-deliveries.ts';

const dataJson =
  '{"id":"3f1c9a52-7d0e-4b8e-9a67-2f6f0f3f5c11","status":"approved","tier":2.50,"metadata":{"user_id":"\\u0001é"}}';

function someEvent() {
  const sent = event({ dataJson, createdAt: new Date(time.nowMs - 86_400_000).toISOString() });
  return { ref: eventRef(sent), event: sent, acceptedAtMs: time.nowMs, subscriptionIds: ['sub_a', 'sub_b'] };
}
const textOf = async (of: Store, { ref }: ReturnType<typeof someEvent>) =>
  (await of.redis.get(eventKey(prefixOfEvent(of, ref), ref))) ?? '';

describe('an event', () => {
  it('is stored packed and read as it was, also where its id is published again', async () => {
    const stored = someEvent();
    await storeEvent(store, stored);
    expect((await textOf(store, stored)).length).toBeLessThan(encodeEvent(stored).length - 60);
    expect(await loadEvent(store, stored.ref)).toEqual(stored);
    expect(await findEvents(store, stored.event.id)).toEqual([stored]);
    expect(await storeEvent(store, stored)).toEqual({ kept: stored });
  });
  it('that an earlier version has stored is read', async () => {
    const stored = someEvent();
    await store.redis.set(eventKey(prefixOfEvent(store, stored.ref), stored.ref), encodeEvent(stored));
    expect(await loadEvent(store, stored.ref)).toEqual(stored);
    expect(await storeEvent(store, stored)).toEqual({ kept: stored });
  });
});

describe('the trace of an event', () => {
  const trace = { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331', flags: 1 };

  it('is stored with it in at most 35 characters, and survives the erasure of its payload', async () => {
    const stored = { ...someEvent(), trace };
    await storeEvent(store, stored);
    expect(await loadEvent(store, stored.ref)).toEqual(stored);
    const { trace: _, ...without } = stored;
    for (const packs of [false, true]) {
      expect(encodeEvent(stored, packs).length - encodeEvent(without, packs).length).toBeLessThanOrEqual(35);
      const erased = { ...stored, erasedAtMs: time.nowMs + 5 };
      expect(decodeEvent(stored.ref, encodeEvent(erased, packs))).toEqual(erased);
    }
  });
  it('that an event was accepted with stays when its id is published again within another trace', async () => {
    const stored = { ...someEvent(), trace };
    await storeEvent(store, stored);
    const again = { ...stored, trace: { ...trace, traceId: 'f'.repeat(32) } };
    expect(await storeEvent(store, again)).toEqual({ kept: stored });
  });
  it('is ignored by processes of the release before, which read everything else', () => {
    const stored = { ...someEvent(), trace };
    const { trace: _, ...without } = stored;
    for (const packs of [false, true]) {
      const fieldsOf = (text: string) => text.slice(0, text.indexOf('\n')).split(' ');
      const [fields, known] = [fieldsOf(encodeEvent(stored, packs)), fieldsOf(encodeEvent(without, packs))];
      expect(fields).toHaveLength(known.length);
      // That release reads the third field as a number in base 36, and all others as they are.
      expect(Number.parseInt(fields[2]!, 36)).toBe(Number.parseInt(known[2]!, 36));
      expect(fields.toSpliced(2, 1)).toEqual(known.toSpliced(2, 1));
    }
  });
});
