/**
 * Keeps the heap of a process small: V8's defaults suit a machine that runs one program. Both limits say when garbage
 * is collected, not how much memory may be used, so they never end a process. It must be called before an app is
 * loaded, so it imports no package.
 */
import { PerformanceObserver } from 'node:perf_hooks';
import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8';

/** The old generation is collected when it has grown by this much since the last time; V8's default is up to 300. */
const HEAP_GROWING_PERCENT = 100;
/**
 * Each half of the young generation grows to this; by default V8 lets it grow to 16 to 64 MiB, depending on the
 * machine.
 */
const SEMI_SPACE_BYTES = 4 * 1024 * 1024;
/** Under a load that needs it, each half grows to this. */
const MAX_SEMI_SPACE_BYTES = 8 * 1024 * 1024;
/** The halves are too small if most of 8 collections promote more than this share of a half to the old generation. */
const MAX_PROMOTED_SHARE = 0.03;
const COLLECTIONS = 8;

/**
 * Limits the growth of this process's heap, except where its command line or `NODE_OPTIONS` says otherwise. Each half
 * of the young generation grows to `semiSpaceBytes`, and to `maxSemiSpaceBytes` only under a load that needs it.
 */
export function limitHeap({ semiSpaceBytes = SEMI_SPACE_BYTES, maxSemiSpaceBytes = MAX_SEMI_SPACE_BYTES } = {}): void {
  const given = `${process.execArgv.join(' ')} ${process.env.NODE_OPTIONS ?? ''}`.replaceAll('_', '-');
  if (!given.includes('--heap-growing-percent')) setFlagsFromString(`--heap-growing-percent=${HEAP_GROWING_PERCENT}`);
  if (!given.includes('--max-semi-space-size')) limitYoungGeneration(semiSpaceBytes, maxSemiSpaceBytes);
}

/**
 * `--max-semi-space-size` can't be changed in a running process, but `--semi-space-growth-factor` can: V8 multiplies
 * the size of the halves by it when objects survive collections. This function sets it to 2 while the halves may grow,
 * else to 1. V8 may shrink them at any time.
 *
 * Small halves are enough while attempts end before the second collection after their start. With many or long attempts
 * in flight, small halves would promote the objects of all attempts to the old generation.
 */
function limitYoungGeneration(semiSpaceBytes: number, maxSemiSpaceBytes: number): void {
  // No growth while the app is loaded: nearly all of its objects survive every collection anyway.
  let factor = 1;
  setFlagsFromString('--semi-space-growth-factor=1');
  let limit = semiSpaceBytes;
  let last = { semiSpaceBytes: 0, oldBytes: Number.POSITIVE_INFINITY };
  let collections = 0;
  let crowded = 0;
  const update = (seen: number) => {
    const now = generations();
    // V8 has shrunk the halves, as it does in an idle process: begin with the lower limit again.
    if (now.semiSpaceBytes < last.semiSpaceBytes) limit = semiSpaceBytes;
    collections += seen;
    if (now.oldBytes - last.oldBytes > seen * MAX_PROMOTED_SHARE * now.semiSpaceBytes) crowded += seen;
    last = now;
    if (collections >= COLLECTIONS) {
      const isTooSmall = crowded > collections / 2;
      if (isTooSmall) limit = Math.min(maxSemiSpaceBytes, Math.max(limit, 2 * now.semiSpaceBytes));
      [collections, crowded] = [0, 0];
    }
    const next = 2 * now.semiSpaceBytes <= limit ? 2 : 1;
    if (next !== factor) setFlagsFromString(`--semi-space-growth-factor=${next}`);
    factor = next;
  };
  new PerformanceObserver((list) => update(list.getEntries().length)).observe({ entryTypes: ['gc'] });
}

/** The capacity of one half of the young generation, and what is in use of the old one. */
function generations(): { semiSpaceBytes: number; oldBytes: number } {
  let [semiSpaceBytes, oldBytes] = [0, 0];
  for (const { space_name: name, space_used_size: used, space_available_size: available } of getHeapSpaceStatistics()) {
    if (name === 'new_space') semiSpaceBytes = used + available;
    if (name === 'old_space') oldBytes = used;
  }
  return { semiSpaceBytes, oldBytes };
}
