/** Which successes are reported, on a real Redis. */
import { expect, it, jest } from '@jest/globals';
import { type EventRef, eventIdOf, eventRef, jointRef, partitionOf } from '@posthorn/core';
import { systemClock } from '@posthorn/runtime';
import { event, store } from '../../../../packages/store/src/test-deliveries.ts';
import { createSucceededEvents } from './succeeded-events.ts';

/** Notes the success of an event's only delivery. Resolves with the number of reports that reach Redis. */
async function reportsOf(ref: EventRef): Promise<number> {
  const commands = store.redis as unknown as { script_shortenEvents: () => Promise<unknown> };
  const reports = jest.spyOn(commands, 'script_shortenEvents');
  const succeeded = createSucceededEvents(store, systemClock);
  succeeded.add(ref, 'sub_1', new Map([['sub_1', 0]]));
  const partition = partitionOf(eventIdOf(ref), store.partitions);
  for (let flushes = 0; flushes < 2; flushes++) await succeeded.flush(partition);
  const { length } = reports.mock.calls;
  reports.mockRestore();
  return length;
}

it('a success is reported once, unless its record is joint with that of its event', async () => {
  const one = event({ id: 'evt_0190a1b2-c3d4-7e5f-8a6b-0c1d2e3f4a5b' });
  expect(await reportsOf(eventRef(one))).toBe(1);
  expect(await reportsOf(jointRef(one)!)).toBe(0);
});
