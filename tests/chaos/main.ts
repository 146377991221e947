/**
 * `npm run chaos`: kills and disconnects processes for some minutes and reports whether anything was lost. `--seed=`, `--minutes=`,
 * `--events=` (a second).
 */
import { endTreeOnSignals } from '../../scripts/process-tree.ts';
import { runChaos } from './run.ts';

endTreeOnSignals();

const option = (name: string, otherwise: number) =>
  Number(process.argv.find((argument) => argument.startsWith(`--${name}=`))?.split('=')[1] ?? otherwise);

const seed = option('seed', Date.now() % 1_000_000);
console.log(`seed ${seed}`);
const { figures, faults } = await runChaos({
  seed,
  breakMs: option('minutes', 3) * 60_000,
  eventsPerS: option('events', 40),
  suspend: true,
  eager: false,
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
