/**
 * Loaded into a process before its app: on SIGUSR2, makes 100 MB of objects of which each lives for 12 MB more, and says on stdout how large the
 * heap got, in MiB.
 */
import { setImmediate } from 'node:timers/promises';
import { getHeapSpaceStatistics } from 'node:v8';

const TURNS = 400;
const KEPT = 50;
const OBJECTS = 4_000;

process.on('SIGUSR2', async () => {
  const kept: object[][] = [];
  const most = sizes();
  for (let turn = 0; turn < TURNS; turn++) {
    kept.push(Array.from({ length: OBJECTS }, (_, i) => ({ turn, text: `${turn}-${i}` })));
    if (kept.length > KEPT) kept.shift();
    // V8 sizes the generations when it collects, which may be several times in one turn only if a turn allocates much.
    await setImmediate();
    const now = sizes();
    most.young = Math.max(most.young, now.young);
    most.old = Math.max(most.old, now.old);
  }
  process.stdout.write(`${JSON.stringify({ msg: 'heap', ...most })}\n`);
});

function sizes(): { young: number; old: number } {
  const spaces = Object.fromEntries(getHeapSpaceStatistics().map((space) => [space.space_name, space]));
  const mib = (name: string) => {
    const { space_used_size = 0, space_available_size = 0 } = spaces[name] ?? {};
    return (space_used_size + (name === 'new_space' ? space_available_size : 0)) / 1024 / 1024;
  };
  return { young: mib('new_space'), old: mib('old_space') };
}
