/** Which calls share a script, without Redis: what each script gets, and when it is sent. */
import { expect, it } from '@jest/globals';
import type { Store } from '../store.ts';
import { joinCalls } from './join-calls.ts';

const store = { spansPartitions: true } as Store;

/** Joins numbers; keeps what each script got, and ends a script when it is told to. */
function joined(
  options: Pick<Parameters<typeof joinCalls<number, number>>[0], 'max' | 'maxDeliveries' | 'deliveriesOf' | 'early'>,
) {
  const scripts: number[][] = [];
  const ends: (() => void)[] = [];
  const call = joinCalls<number, number>({
    ...options,
    prefixOf: () => '',
    async run(_store, all) {
      scripts.push([...all]);
      const { promise, resolve } = Promise.withResolvers<void>();
      ends.push(resolve);
      await promise;
      return all.map((one) => 10 * one);
    },
  });
  return { scripts, ends, send: (...all: number[]) => Promise.all(all.map((one) => call(store, one))) };
}

const endOfTurn = () => new Promise((resolve) => setImmediate(resolve));

it('joins the calls of a turn at its end, and sends a full group before', async () => {
  const { scripts, ends, send } = joined({ max: 3 });
  const results = send(1, 2, 3, 4, 5);
  expect(scripts).toEqual([[1, 2, 3]]);
  await endOfTurn();
  expect(scripts).toEqual([
    [1, 2, 3],
    [4, 5],
  ]);
  for (const end of ends) end();
  expect(await results).toEqual([10, 20, 30, 40, 50]);
});

it('sends a few calls early while few scripts are in flight', async () => {
  const { scripts, ends, send } = joined({ max: 5, early: { items: 2, unlessInFlight: 2 } });
  const first = send(1, 2, 3, 4, 5, 6, 7);
  expect(scripts).toEqual([
    [1, 2],
    [3, 4],
  ]);
  await endOfTurn();
  expect(scripts.slice(2)).toEqual([[5, 6, 7]]);
  for (const end of ends) end();
  expect(await first).toEqual([10, 20, 30, 40, 50, 60, 70]);
  const second = send(8, 9);
  expect(scripts.slice(3)).toEqual([[8, 9]]);
  ends[3]?.();
  expect(await second).toEqual([80, 90]);
});

it('does not send calls without deliveries early: Redis needs hardly any time for them', async () => {
  const { scripts, ends, send } = joined({
    max: 5,
    deliveriesOf: (one) => (one < 0 ? 0 : 1),
    early: { items: 2, unlessInFlight: 2 },
  });
  const results = send(-1, -2, 3, 4, 5);
  expect(scripts).toEqual([[-1, -2, 3, 4]]);
  await endOfTurn();
  expect(scripts).toEqual([[-1, -2, 3, 4], [5]]);
  for (const end of ends) end();
  expect(await results).toEqual([-10, -20, 30, 40, 50]);
});
