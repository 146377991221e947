/** Chooses at random. */

/** Returns up to `limit` of the items, each at most once, in random order. */
export function randomSample<T>(items: readonly T[], limit: number): T[] {
  const left = [...items];
  const sample: T[] = [];
  while (sample.length < limit && left.length > 0) {
    sample.push(...left.splice(Math.floor(Math.random() * left.length), 1));
  }
  return sample;
}
