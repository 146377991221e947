/** Two of 20 addresses stop responding: how long events take to the others, by `npm run bench -- --only=hanging`. */
import { measureHanging } from '../compare.ts';
import { percentile } from '../harness.ts';
import { type Run, round } from '../run.ts';
import { openTarget, startPlain, startPosthorn } from '../systems.ts';
import { readTarget } from '../targets.ts';

const ADDRESSES = 20;
const HANGING = 2;

export async function hanging({ bench, quick, target }: Run) {
  const other = target === undefined ? undefined : readTarget(target);
  const starts = [
    () => startPosthorn(bench, 'Posthorn', ADDRESSES),
    () => startPlain(bench, 'plain BullMQ + got', ADDRESSES),
    ...(other ? [() => openTarget(bench, other)] : []),
  ];
  const rows: Record<string, Record<string, number>> = {};
  for (const start of starts) {
    const system = await start();
    const { alone, beside } = await measureHanging(system, HANGING, quick ? 50 : 150);
    rows[system.name] = {
      'all respond: p50, ms': round(percentile(alone, 0.5), 1),
      'p99, ms': round(percentile(alone, 0.99), 1),
      'some hang: p50, ms': round(percentile(beside, 0.5), 1),
      'p99 beside them, ms': round(percentile(beside, 0.99), 1),
    };
    await system.stop();
  }
  const addresses = other ? `${ADDRESSES} addresses (${other.name}: ${other.fanOut})` : `${ADDRESSES} addresses`;
  console.log(
    `Ten events a second to ${addresses}, of which ${HANGING} hang: from publishing to arrival at the others`,
  );
  console.table(rows);
  return rows;
}
