/** Which events begin in a turn of the event loop. */
import { describe, expect, it } from '@jest/globals';
import { EventTurns } from './event-turns.ts';

const OF_A_TURN = 16;
const nextTurn = () => new Promise<void>((resolve) => setImmediate(resolve));

/** Events of publishers, and those of each turn that have begun. */
function started(takesMs = 0) {
  let nowMs = 0;
  const turns = new EventTurns(() => nowMs);
  let begun: string[] = [];
  return {
    /** Returns how many of them begin at once. */
    publish(publisher: string, count: number): number {
      let atOnce = 0;
      for (let i = 0; i < count; i++) {
        const turn = turns.turnFor(publisher);
        if (turn)
          void turn.then(() => {
            nowMs += takesMs;
            begun.push(publisher);
          });
        else {
          nowMs += takesMs;
          atOnce += 1;
        }
      }
      return atOnce;
    },
    async begunInNextTurn(): Promise<string[]> {
      begun = [];
      await nextTurn();
      return begun;
    },
  };
}

describe('events', () => {
  it('begin at once while a turn has room', async () => {
    const { publish, begunInNextTurn } = started();
    expect(publish('a', OF_A_TURN)).toBe(OF_A_TURN);
    expect(await begunInNextTurn()).toEqual([]);
    expect(publish('a', OF_A_TURN)).toBe(OF_A_TURN);
  });

  it('of a full turn begin in the next ones, and leave no room in them', async () => {
    const { publish, begunInNextTurn } = started();
    expect(publish('a', 2.5 * OF_A_TURN)).toBe(OF_A_TURN);
    expect(await begunInNextTurn()).toHaveLength(OF_A_TURN);
    expect(publish('a', 1)).toBe(0);
    expect(await begunInNextTurn()).toHaveLength(OF_A_TURN / 2 + 1);
    expect(publish('a', OF_A_TURN)).toBe(OF_A_TURN / 2 - 1);
  });

  it('of publishers take turns', async () => {
    const { publish, begunInNextTurn } = started();
    publish('flood', 100 * OF_A_TURN);
    publish('b', 3);
    publish('c', 1);
    const begun = await begunInNextTurn();
    expect(begun.slice(0, 6)).toEqual(['flood', 'b', 'c', 'flood', 'b', 'flood']);
    expect(begun).toHaveLength(OF_A_TURN);
  });

  it('of more publishers than a turn has events begin in the order of the publishers', async () => {
    const { publish, begunInNextTurn } = started();
    publish('flood', OF_A_TURN);
    const publishers = Array.from({ length: OF_A_TURN + 4 }, (_, i) => `p${i}`);
    for (const publisher of publishers) publish(publisher, 2);
    expect(await begunInNextTurn()).toEqual(publishers.slice(0, OF_A_TURN));
    expect(await begunInNextTurn()).toEqual([...publishers.slice(OF_A_TURN), ...publishers.slice(0, OF_A_TURN - 4)]);
  });

  it('that take long have a turn for each', async () => {
    const { publish, begunInNextTurn } = started(2);
    expect(publish('flood', 3)).toBe(1);
    publish('b', 1);
    expect(await begunInNextTurn()).toEqual(['flood']);
    expect(await begunInNextTurn()).toEqual(['b']);
    expect(await begunInNextTurn()).toEqual(['flood']);
  });
});
