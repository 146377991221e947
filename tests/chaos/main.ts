/**
 * `npm run chaos`: kills and disconnects processes for some minutes and reports whether anything was lost. `--seed=`,
 * `--minutes=`, `--events=` (a second), `--beside=<folder>` (one process of each app runs from that checkout, as during
 * an upgrade), `--restore` (a backup is taken and restored during the run).
 */
import { readArguments, readNumber } from '../../scripts/arguments.ts';
import { buildApps } from '../../scripts/build-apps.ts';
import { endTreeOnSignals } from '../../scripts/process-tree.ts';
import { runChaos } from './run.ts';

endTreeOnSignals();

const given = readArguments({
  seed: { type: 'string', default: String(Date.now() % 1_000_000) },
  minutes: { type: 'string', default: '3' },
  events: { type: 'string', default: '40' },
  beside: { type: 'string' },
  restore: { type: 'boolean', default: false },
});
const seed = readNumber('seed', given.seed);
console.log(`seed ${seed}`);
await buildApps(console.log);
const { figures, faults } = await runChaos({
  seed,
  breakMs: readNumber('minutes', given.minutes) * 60_000,
  eventsPerS: readNumber('events', given.events),
  suspend: true,
  erase: true,
  eager: false,
  beside: given.beside,
  restore: given.restore,
  leastEvents: 0,
  say: (line) => console.log(line),
});
console.table(Object.fromEntries(Object.entries(figures).map(([name, value]) => [name, { value }])));
for (const fault of faults) console.log(`FAULT ${fault}`);
console.log(
  faults.length === 0
    ? 'Nothing lost, nothing stuck.'
    : `${faults.length} faults. Again: npm run chaos -- --seed=${seed}`,
);
process.exit(faults.length === 0 ? 0 : 1);
