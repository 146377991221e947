/** Starts one ingest process. */
import { cacheCompiledCode } from '@posthorn/runtime/compile-cache';
import { limitHeap } from '@posthorn/runtime/heap';

limitHeap();
cacheCompiledCode();
// Not at the top level: what is built is CommonJS (scripts/build-apps.ts).
async function main(): Promise<void> {
  const [{ runApp }, { buildIngest }, { loadIngestSettings }] = await Promise.all([
    import('@posthorn/runtime'),
    import('./build.ts'),
    import('./config.ts'),
  ]);
  await runApp(() => buildIngest(loadIngestSettings(process.env)));
}
void main();
