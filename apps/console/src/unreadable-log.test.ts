/** That a record that can't be read fills no log. */
import { expect, it } from '@jest/globals';
import { UnreadableRecord } from '@posthorn/store';
import { createUnreadableLog } from './unreadable-log.ts';

it('logs each record once a minute, however often a list that leaves it out is read', () => {
  const logged: string[][] = [];
  let nowMs = 0;
  const error = ({ records }: { records: { id: string }[] }) => void logged.push(records.map(({ id }) => id));
  const log = createUnreadableLog({ error } as Parameters<typeof createUnreadableLog>[0], () => nowMs);
  const [a, b] = [new UnreadableRecord('delivery', 'a', 'x'), new UnreadableRecord('delivery', 'b', 'x')];
  log([]);
  log([a]);
  log([a, b]);
  log([a, b]);
  expect(logged).toEqual([['a'], ['b']]);
  nowMs += 60_000;
  log([a, b]);
  expect(logged).toEqual([['a'], ['b'], ['a', 'b']]);
});
