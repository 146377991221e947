/** What planning costs. What it plans is in tests/apply.test.ts. */
import { describe, expect, it } from '@jest/globals';
import type { Subscription } from '@posthorn/operator-api';
import { doubledEvents, planChanges } from './apply-plan.ts';

describe('planning', () => {
  it.each([
    ['without a key', () => null],
    ['with keys that the file lacks', (i: number) => `other-${i}`],
    ['as the file says', (i: number) => `k-${i}`],
  ])('reads each subscription a few times only, however many there are: %s', (_what, keyOf) => {
    const COUNT = 300;
    let reads = 0;
    const fields = { event_types: 'all' as const, environment: 'both' as const, description: '' };
    const numbers = [...Array(COUNT).keys()];
    const wanted = numbers.map((i) => ({ key: `k-${i}`, url: `https://a.example/${i}`, ...fields }));
    const present = numbers.map((i) => ({
      ...fields,
      id: `sub_${i}`,
      url: `https://b.example/${i}`,
      get key() {
        reads += 1;
        return keyOf(i);
      },
    })) as unknown as Subscription[];
    doubledEvents(planChanges(wanted, present, {}), wanted, present);
    expect(reads).toBeLessThan(20 * COUNT);
  });
});
