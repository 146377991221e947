/** Starts one worker process. */
import { cacheCompiledCode } from '@posthorn/runtime/compile-cache';
import { limitHeap } from '@posthorn/runtime/heap';

limitHeap();
cacheCompiledCode();
const [{ runApp }, { buildWorker }, { loadWorkerSettings }] = await Promise.all([
  import('@posthorn/runtime'),
  import('./build.ts'),
  import('./config.ts'),
]);
await runApp(() => buildWorker(loadWorkerSettings(process.env)));
