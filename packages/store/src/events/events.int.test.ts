/** How events are stored: packed, unless they are long. */
import { describe, expect, it } from '@jest/globals';
import { DAY_MS, eventRef } from '@posthorn/core';
import { findEvents, loadEvent, type Store, storeEvent } from '../index.ts';
import { eventKey } from '../keys.ts';
import { event, store, time } from '../test-deliveries.ts';
import { decodeEvent, encodeErased, encodeEvent } from './event-record.ts';
import { prefixOfEvent } from './events.ts';

const dataJson =
  '{"id":"3f1c9a52-7d0e-4b8e-9a67-2f6f0f3f5c11","status":"approved","tier":2.50,"metadata":{"user_id":"\\u0001é"}}';

/** Too long to be packed. */
const longJson = JSON.stringify({ id: '1', status: 'approved', note: 'x'.repeat(5_000) });

function someEvent(json = dataJson) {
  const sent = event({ dataJson: json, createdAt: new Date(time.nowMs - DAY_MS).toISOString() });
  return { ref: eventRef(sent), event: sent, acceptedAtMs: time.nowMs, subscriptionIds: ['sub_a', 'sub_b'] };
}
const textOf = async (of: Store, { ref }: ReturnType<typeof someEvent>) =>
  (await of.redis.get(eventKey(prefixOfEvent(of, ref), ref))) ?? '';

describe('an event', () => {
  it('is stored packed and read as it was, also where its id is published again', async () => {
    const stored = someEvent();
    await storeEvent(store, stored);
    expect((await textOf(store, stored)).length).toBeLessThan(dataJson.length - 20);
    expect(await loadEvent(store, stored.ref)).toEqual(stored);
    expect(await findEvents(store, stored.event.id)).toEqual([stored]);
    expect(await storeEvent(store, stored)).toEqual({ kept: stored });
  });
  it('that is too long to be packed is stored and read as it was', async () => {
    const stored = someEvent(longJson);
    await storeEvent(store, stored);
    expect(await textOf(store, stored)).toContain(longJson);
    expect(await loadEvent(store, stored.ref)).toEqual(stored);
    expect(await storeEvent(store, stored)).toEqual({ kept: stored });
  });
});

describe('the trace of an event', () => {
  const trace = { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331', flags: 1 };
  const read = expect.objectContaining(trace);

  it('is stored with it in at most 35 characters, and survives the erasure of its payload', async () => {
    for (const json of [dataJson, longJson]) {
      const stored = { ...someEvent(json), trace };
      await storeEvent(store, stored);
      expect(await loadEvent(store, stored.ref)).toEqual({ ...stored, trace: read });
      const { trace: _, ...without } = stored;
      expect(encodeEvent(stored).length - encodeEvent(without).length).toBeLessThanOrEqual(35);
      const erasedAtMs = time.nowMs + 5;
      const erased = { ...stored, event: { ...stored.event, dataJson: '{}' }, erasedAtMs, trace: read };
      expect(decodeEvent(stored.ref, encodeErased(stored, erasedAtMs))).toEqual(erased);
    }
  });
  it('that an event was accepted with stays when its id is published again within another trace', async () => {
    const stored = { ...someEvent(), trace };
    await storeEvent(store, stored);
    const again = { ...stored, trace: { ...trace, traceId: 'f'.repeat(32) } };
    expect(await storeEvent(store, again)).toEqual({ kept: { ...stored, trace: read } });
  });
  it('is ignored by processes of the release before, which read everything else', () => {
    for (const json of [dataJson, longJson]) {
      const stored = { ...someEvent(json), trace };
      const { trace: _, ...without } = stored;
      const fieldsOf = (text: string) => text.slice(0, text.indexOf('\n')).split(' ');
      const [fields, known] = [fieldsOf(encodeEvent(stored)), fieldsOf(encodeEvent(without))];
      expect(fields).toHaveLength(known.length);
      // That release reads the third field as a number in base 36, and all others as they are.
      expect(Number.parseInt(fields[2]!, 36)).toBe(Number.parseInt(known[2]!, 36));
      expect(fields.toSpliced(2, 1)).toEqual(known.toSpliced(2, 1));
    }
  });
});
