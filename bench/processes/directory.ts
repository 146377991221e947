/**
 * Keeps a directory of subscriptions like a console does, searches it, and prints what that costs. Needs --expose-gc.
 */
import { DAY_MS } from '@posthorn/core';
import { createDirectory, newSubscription, openStore, type SubscriptionQuery, saveSubscription } from '@posthorn/store';
import { type DirectoryFigures, fieldsOf } from '../directory.ts';
import { median, percentile } from '../harness.ts';

const { REDIS_URL, KEY_PREFIX, COUNT, READS } = process.env as Record<string, string>;
const count = Number(COUNT);
const reads = Number(READS);

const cpuMs = () => {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
};
/** Bytes of objects and arrays in use after garbage collection. */
const usedBytes = () => {
  for (let i = 0; i < 3; i++) globalThis.gc?.();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
};
/**
 * Resolves with the longest turn of the event loop while `work` runs, as CPU time: what else the machine does has no
 * effect on it.
 */
async function longestTurnMs(work: () => Promise<unknown>): Promise<number> {
  let longest = 0;
  let before = cpuMs();
  let isOver = false;
  const measure = () => {
    const now = cpuMs();
    longest = Math.max(longest, now - before);
    before = now;
    if (!isOver) setImmediate(measure);
  };
  setImmediate(measure);
  await work();
  isOver = true;
  return longest;
}

const opened = openStore(
  { REDIS_URL: REDIS_URL!, KEY_PREFIX: KEY_PREFIX!, PARTITIONS: 1, RETENTION: 30 * DAY_MS },
  { onError: (error) => console.error(error.message) },
);
await opened.start();
const { store } = opened;
const directory = createDirectory(store);
const find = (query: Partial<SubscriptionQuery>) => directory.find({ sort: 'newest', ...query }, { limit: 50 });

const emptyBytes = usedBytes();
const startedAt = performance.now();
const cpuBefore = cpuMs();
await find({});
const loaded = { ms: performance.now() - startedAt, cpuMs: cpuMs() - cpuBefore };
const loadedBytes = usedBytes();
const another = createDirectory(store);
const load = { ...loaded, turnMs: await longestTurnMs(() => another.find({ sort: 'newest' }, { limit: 50 })) };

const searches: DirectoryFigures['searches'] = {};
async function measure(
  name: string,
  query: (i: number) => Partial<SubscriptionQuery>,
  before?: (i: number) => Promise<unknown>,
) {
  const times: number[] = [];
  let cpu = 0;
  const search = async (i: number) => {
    await before?.(i);
    const [startedAtMs, cpuAtStart] = [performance.now(), cpuMs()];
    await find(query(i));
    times.push(performance.now() - startedAtMs);
    cpu += cpuMs() - cpuAtStart;
  };
  for (let i = 0; i < reads; i++) await search(i);
  const figures = { p50Ms: median(times), p99Ms: percentile(times, 0.99), cpuMs: cpu / reads };
  const turnMs = await longestTurnMs(async () => {
    for (let i = 0; i < reads; i++) await search(reads + i);
  });
  searches[name] = { ...figures, turnMs };
}
await measure('no words', () => ({}));
await measure('nothing matches', () => ({ q: 'nothing-has-this' }));
await measure('one matches, by a part of the host', (i) => ({ q: `h${i}.` }));
await measure('an eighth matches', () => ({ q: 'acme' }));
await measure('paused, by address', () => ({ status: 'paused', sort: 'url' }));
await measure('failing, the worst first', () => ({ health: 'failing', sort: 'worst' }));
await measure(
  'one matches, just created',
  (i) => ({ q: `h${count + i}.` }),
  (i) => saveSubscription(store, { ...newSubscription(fieldsOf(count + i), Date.now()), status: 'active' }),
);
const figures: DirectoryFigures = { bytesEach: (loadedBytes - emptyBytes) / count, load, searches };
console.log(JSON.stringify(figures));
await opened.stop();
