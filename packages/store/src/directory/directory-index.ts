/**
 * An index in memory of subscriptions by their words, status, environment and health. It is a table of bits, 66 bytes a
 * subscription. Each three characters in a row of a text set one of 512 bits, so a word can only be in texts that have
 * all bits of the word. A search compares the bits of 32 subscriptions at once, and looks only at the texts that are
 * left.
 */
import {
  HEALTH_STATES,
  type HealthState,
  SUBSCRIPTION_ENVIRONMENTS,
  SUBSCRIPTION_STATUSES,
  type SubscriptionEnvironment,
  type SubscriptionStatus,
} from '@posthorn/core';

const TEXT_BITS = 512;
/** Keeps nine bits of 32: as many as number the bits of a text. */
const HASH_SHIFT = 32 - 9;
/**
 * Each value that can be filtered by has a bit too, after those of the texts. The last one says that there is a
 * subscription at all.
 */
const VALUES: readonly string[] = [...SUBSCRIPTION_STATUSES, ...SUBSCRIPTION_ENVIRONMENTS, ...HEALTH_STATES];
const PRESENT = TEXT_BITS + VALUES.length;
/** 32-bit numbers of a block for each bit: 64 bytes, as many as a processor reads at once. */
const WORDS = 16;

/** What can be filtered by. */
interface Facets {
  readonly status: SubscriptionStatus;
  readonly environment: SubscriptionEnvironment;
  readonly health: HealthState;
}

/** An item of an index. */
export interface Indexed extends Facets {
  readonly text: string;
  /** Its place in the index, which sets it. */
  place: number;
}

export type Wanted = { readonly [Name in keyof Facets]?: Facets[Name] | undefined };

/** Returns an empty index. To remove an item, pass the object that was added. */
export function createDirectoryIndex<T extends Indexed>() {
  /**
   * Each has the bits of 512 items: for each of the bits above, 16 numbers in a row, which one access to memory reads.
   */
  const blocks: Uint32Array[] = [];
  const items: (T | undefined)[] = [];
  const freePlaces: number[] = [];

  function change(item: T, changed: (bits: number, mask: number) => number): void {
    const { place } = item;
    const block = blocks[place >>> 9] ?? new Uint32Array((PRESENT + 1) * WORDS);
    blocks[place >>> 9] = block;
    const word = (place >>> 5) % WORDS;
    const mask = 1 << (place & 31);
    const apply = (bit: number) => {
      const at = bit * WORDS + word;
      block[at] = changed(block[at] ?? 0, mask);
    };
    eachBit(item.text, apply);
    for (const bit of [...bitsOfFacets(item), PRESENT]) apply(bit);
  }

  /** Calls `visit` with the places of 32 items at a time, of which those in `found` match. */
  function match(wanted: Wanted, words: readonly string[], visit: (firstPlace: number, found: number) => void): void {
    const unique = new Set<number>();
    for (const word of words) eachBit(word, (bit) => unique.add(bit * WORDS));
    const rows = [...unique, ...[...bitsOfFacets(wanted), PRESENT].map((bit) => bit * WORDS)];
    for (const [i, block] of blocks.entries()) {
      for (let word = 0; word < WORDS; word++) {
        let found = -1;
        for (const row of rows) {
          found &= block[row + word] ?? 0;
          if (found === 0) break;
        }
        if (found !== 0) visit((i * WORDS + word) * 32, found);
      }
    }
  }

  return {
    add(item: T): void {
      item.place = freePlaces.pop() ?? items.length;
      items[item.place] = item;
      change(item, (bits, mask) => bits | mask);
    },
    remove(item: T): void {
      items[item.place] = undefined;
      freePlaces.push(item.place);
      change(item, (bits, mask) => bits & ~mask);
    },
    /** How many items have these values. */
    count(wanted: Wanted): number {
      let count = 0;
      match(wanted, [], (_, found) => {
        for (let left = found; left !== 0; left &= left - 1) count += 1;
      });
      return count;
    },
    /** The items that have these values and may have these words, in no order. */
    find(wanted: Wanted, words: readonly string[]): T[] {
      const all: T[] = [];
      match(wanted, words, (firstPlace, found) => {
        for (let left = found; left !== 0; left &= left - 1) {
          const item = items[firstPlace + 31 - Math.clz32(left & -left)];
          if (item !== undefined) all.push(item);
        }
      });
      return all;
    },
  };
}

function bitsOfFacets({ status, environment, health }: Wanted): number[] {
  const values: (string | undefined)[] = [status, environment, health];
  return values.flatMap((value) => (value === undefined ? [] : [TEXT_BITS + VALUES.indexOf(value)]));
}

/** Calls `visit` with a bit for each three characters in a row. */
function eachBit(text: string, visit: (bit: number) => void): void {
  for (let i = 2; i < text.length; i++) {
    const gram = (text.charCodeAt(i - 2) * 31 + text.charCodeAt(i - 1)) * 31 + text.charCodeAt(i);
    // Multiplicative hashing: the upper bits depend on all others.
    visit(Math.imul(gram, 0x9e3779b1) >>> HASH_SHIFT);
  }
}
