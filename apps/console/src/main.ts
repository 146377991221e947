/** Starts one console process. */
import { cacheCompiledCode } from '@posthorn/runtime/compile-cache';
import { limitHeap } from '@posthorn/runtime/heap';

// It has little to do most of the time, and what it does for people may take a millisecond more.
limitHeap({ semiSpaceBytes: 1024 * 1024, maxSemiSpaceBytes: 1024 * 1024 });
cacheCompiledCode();
// Not at the top level: what is built is CommonJS (scripts/build-apps.ts).
async function main(): Promise<void> {
  const [{ runApp }, { buildConsole }, { loadConsoleSettings }] = await Promise.all([
    import('@posthorn/runtime'),
    import('./build.ts'),
    import('./config.ts'),
  ]);
  await runApp(() => buildConsole(loadConsoleSettings(process.env)));
}
void main();
