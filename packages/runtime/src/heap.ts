/**
 * Keeps the heap of a process small: V8's defaults suit a machine that runs one program. Both limits say when garbage is collected, not how much
 * memory may be used, so they never end a process. It must be called before an app is loaded, so it imports no package.
 */
import { PerformanceObserver } from 'node:perf_hooks';
import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8';

/** The old generation is collected when it has grown by this much since the last time; V8's default is up to 300. */
const HEAP_GROWING_PERCENT = 100;
/** Each half of the young generation grows to this; V8's default depends on the machine, 16 to 64 MiB. */
const MAX_SEMI_SPACE_BYTES = 8 * 1024 * 1024;

/** Limits the growth of this process's heap, except where its command line or `NODE_OPTIONS` says otherwise. */
export function limitHeap(): void {
  const given = `${process.execArgv.join(' ')} ${process.env.NODE_OPTIONS ?? ''}`.replaceAll('_', '-');
  if (!given.includes('--heap-growing-percent')) setFlagsFromString(`--heap-growing-percent=${HEAP_GROWING_PERCENT}`);
  if (!given.includes('--max-semi-space-size')) limitYoungGeneration();
}

/**
 * `--max-semi-space-size` can't be changed in a running process. But the factor can by which V8 lets the halves grow when much survives a
 * collection: it is 2 below the limit and 1, which is no growth, at the limit. V8 may shrink them at any time.
 */
function limitYoungGeneration(): void {
  // While an app is loaded nearly everything survives, and stays.
  let factor = 1;
  setFlagsFromString('--semi-space-growth-factor=1');
  const update = () => {
    const next = 2 * youngGenerationBytes() <= MAX_SEMI_SPACE_BYTES ? 2 : 1;
    if (next !== factor) setFlagsFromString(`--semi-space-growth-factor=${next}`);
    factor = next;
  };
  new PerformanceObserver(update).observe({ entryTypes: ['gc'] });
}

/** The capacity of one half. */
function youngGenerationBytes(): number {
  const young = getHeapSpaceStatistics().find((space) => space.space_name === 'new_space');
  return young === undefined ? 0 : young.space_used_size + young.space_available_size;
}
