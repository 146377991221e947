/** What is in progress: in order, and collected as soon as it is over. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { ActiveList } from './active-list.ts';

const run = promisify(execFile);

/**
 * 20 MB of objects pass through a list, ten at a time, while nothing but young garbage is collected. Prints by how many
 * MB the old generation has grown.
 */
const PASS_THROUGH = `
  import { getHeapSpaceStatistics } from 'node:v8';
  const { ActiveList } = await import(process.env.MODULE);
  const list = eval(process.env.CREATE);
  const oldBytes = () => getHeapSpaceStatistics().find((space) => space.space_name === 'old_space').space_used_size;
  const pass = (count) => {
    const items = [];
    for (let i = 0; i < count; i++) {
      const item = { payload: new Array(200).fill(i) };
      list.add(item);
      if (items.push(item) > 10) list.delete(items.shift());
    }
    for (const item of items) list.delete(item);
  };
  pass(100);
  gc();
  gc();
  const before = oldBytes();
  for (let round = 0; round < 12; round++) {
    pass(1_000);
    gc({ type: 'minor' });
  }
  console.log((oldBytes() - before) / 1e6);
`;

describe('a list of what is in progress', () => {
  it('does what a Set does, in the same order', () => {
    const change = fc.record({ adds: fc.boolean(), item: fc.nat(20) });
    fc.assert(
      fc.property(fc.array(change, { maxLength: 200 }), (changes) => {
        const list = new ActiveList<number>();
        const set = new Set<number>();
        for (const { adds, item } of changes) {
          expect(list.has(item)).toBe(set.has(item));
          if (!adds) expect(list.delete(item)).toBe(set.delete(item));
          else if (!set.has(item)) {
            set.add(item);
            list.add(item);
          }
          const items = [...set];
          expect([...list]).toEqual(items);
          expect(list.size).toBe(items.length);
          expect([list.at(0), list.at(items.length - 1), list.at(items.length)]).toEqual([
            items[0],
            items.at(-1),
            undefined,
          ]);
          expect(list.find((one) => one > 10)).toBe(items.find((one) => one > 10));
        }
      }),
    );
  });

  it('can be emptied while its items are read', () => {
    const list = new ActiveList<number>();
    for (const item of [1, 2, 3]) list.add(item);
    const read: number[] = [];
    for (const item of list) {
      list.delete(item);
      read.push(item);
    }
    expect(read).toEqual([1, 2, 3]);
    expect(list.size).toBe(0);
  });

  it('lets what passes through it die young, which a Set does not', async () => {
    // In a process of its own: what tests allocate would be counted.
    const grownBy = async (create: string): Promise<number> => {
      const { stdout } = await run(process.execPath, ['--expose-gc', '--input-type=module', '-e', PASS_THROUGH], {
        env: { ...process.env, CREATE: create, MODULE: new URL('active-list.ts', import.meta.url).href },
      });
      return Number(stdout);
    };
    expect(await grownBy('new ActiveList()')).toBeLessThan(1);
    expect(await grownBy('new Set()')).toBeGreaterThan(5);
  });
});
