/** The index of the directory: it passes over nothing that matches, and little else is left to look at. */
import { describe, expect, it } from '@jest/globals';
import { HEALTH_STATES, SUBSCRIPTION_ENVIRONMENTS, SUBSCRIPTION_STATUSES } from '@posthorn/core';
import { createDirectoryIndex, type Indexed } from './directory-index.ts';

const COUNT = 3_000;
const from = <T>(list: readonly T[], i: number) => list[i % list.length]!;

function item(i: number): Indexed {
  return {
    text: `https://h${i}.customer-${i % 7}.example/in\nçüstomer ${(i * 7_919) % COUNT} 北京\nsub_${i}`,
    status: from(SUBSCRIPTION_STATUSES, i),
    environment: from(SUBSCRIPTION_ENVIRONMENTS, i),
    health: from(HEALTH_STATES, i),
    place: -1,
  };
}
/** An index after additions, removals and replacements, and what it should have. */
function filled() {
  const index = createDirectoryIndex<Indexed>();
  const items = Array.from({ length: COUNT }, (_, i) => item(i));
  for (const one of items) index.add(one);
  for (const one of items.filter((_, i) => i % 5 === 0)) index.remove(one);
  const kept = items.filter((_, i) => i % 5 !== 0);
  const later = Array.from({ length: COUNT / 2 }, (_, i) => item(COUNT + i));
  for (const one of later) index.add(one);
  return { index, items: [...kept, ...later] };
}
const has = (one: Indexed, words: string[]) => words.every((word) => one.text.includes(word));

describe('the index of the directory', () => {
  const { index, items } = filled();
  it.each([
    [['customer-3']],
    [['h77']],
    [['in', 'h1']],
    [['üst', '北京']],
    [['sub_2999']],
    [['https://h4499.customer-5.example/in']],
    [['x']],
    [['']],
    [[]],
  ])('finds every item with the words %j', (words: string[]) => {
    const found = new Set(index.find({}, words));
    expect(items.filter((one) => has(one, words)).filter((one) => !found.has(one))).toEqual([]);
    expect(found.size).toBe(index.find({}, words).length);
  });
  it.each([['nothing-has-this'], ['h77.customer-0'], ['sub_1234'], ['1234 北京']])(
    'leaves few items without the word %s to look at',
    (word) => {
      expect(index.find({}, [word]).filter((one) => !has(one, [word])).length).toBeLessThan(COUNT / 100);
    },
  );
  it('counts and finds exactly the items with some values', () => {
    expect(index.count({})).toBe(items.length);
    for (const status of [undefined, ...SUBSCRIPTION_STATUSES]) {
      for (const health of [undefined, ...HEALTH_STATES]) {
        const environment = from(SUBSCRIPTION_ENVIRONMENTS, status?.length ?? 0);
        const expected = items.filter(
          (one) =>
            (status === undefined || one.status === status) &&
            (health === undefined || one.health === health) &&
            one.environment === environment,
        );
        const wanted = { status, health, environment };
        expect(index.count(wanted)).toBe(expected.length);
        expect(new Set(index.find(wanted, []))).toEqual(new Set(expected));
      }
    }
  });
  it('takes the places of removed items again, and is empty without items', () => {
    const own = createDirectoryIndex<Indexed>();
    const first = item(1);
    own.add(first);
    own.remove(first);
    const second = item(2);
    own.add(second);
    expect(second.place).toBe(first.place);
    expect(own.find({}, ['h1.'])).toEqual([]);
    own.remove(second);
    expect([own.count({}), own.find({}, [])]).toEqual([0, []]);
  });
});
