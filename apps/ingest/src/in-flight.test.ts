/** How much a publisher may have in flight to Redis, and when the rest begins. */
import { describe, expect, it } from '@jest/globals';
import { StorageUnavailable } from '@posthorn/core';
import { InFlight } from './in-flight.ts';

const MAX = 500;

/** Work of publishers, and how to end it. */
function started() {
  const inFlight = new InFlight();
  const running: { name: string; end: () => void; fail: (error: Error) => void }[] = [];
  return {
    running,
    async add(name: string, weight: number): Promise<void> {
      const line = inFlight.lineOf(name, 0);
      await line.begin(weight);
      try {
        await new Promise<void>((end, fail) => running.push({ name, end, fail }));
      } catch (error) {
        line.fail(error);
        throw error;
      } finally {
        line.end(weight);
      }
    },
    runningOf: (name: string) => running.filter((one) => one.name === name).length,
  };
}

const settled = () => new Promise<void>((resolve) => setImmediate(resolve));

describe('what a publisher has in flight', () => {
  it('is limited, without a delay for others', async () => {
    const { add, runningOf } = started();
    for (let i = 0; i < 1_000; i++) void add('flood', 100);
    void add('other', 1);
    await settled();
    expect([runningOf('flood'), runningOf('other')]).toEqual([MAX / 100, 1]);
  });

  it('goes on in order as it ends', async () => {
    const { add, running } = started();
    const order: number[] = [];
    const weights = [MAX - 1, 1, MAX, 1];
    for (const [i, weight] of weights.entries()) void add('a', weight).then(() => order.push(i));
    await settled();
    expect(running).toHaveLength(2);
    running[0]!.end();
    await settled();
    expect(running).toHaveLength(2);
    running[1]!.end();
    await settled();
    expect(running).toHaveLength(3);
    running[2]!.end();
    await settled();
    running[3]!.end();
    await settled();
    expect(order).toEqual([0, 1, 2, 3]);
  });

  it('does not overtake what waits, however light it is: a large fan-out would wait for ever', async () => {
    const { add, running } = started();
    const order: string[] = [];
    for (const [name, weight] of Object.entries({ first: 1, heavy: MAX, light: 1 }))
      void add('a', weight).then(() => order.push(name));
    await settled();
    expect(running).toHaveLength(1);
    for (let i = 0; i < 3; i++) {
      running[i]!.end();
      await settled();
    }
    expect(order).toEqual(['first', 'heavy', 'light']);
  });

  it('may be heavier than the limit if it is alone', async () => {
    const { add, running } = started();
    void add('a', 2 * MAX);
    void add('a', 1);
    await settled();
    expect(running).toHaveLength(1);
  });

  it('goes on after a failure of one, but fails at once where Redis is unavailable', async () => {
    const { add, running } = started();
    const results = Array.from({ length: 4 }, () => add('a', MAX).catch((error: Error) => error.message));
    await settled();
    running[0]!.fail(new Error('broken'));
    await settled();
    expect(running).toHaveLength(2);
    running[1]!.fail(new StorageUnavailable('away'));
    expect(await Promise.all(results)).toEqual(['broken', 'away', 'away', 'away']);
    void add('a', MAX);
    await settled();
    expect(running).toHaveLength(3);
  });
});
