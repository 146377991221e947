/** Ten times the load that ingest accepts: `npm run bench -- --only=overload`. */
import { benchOverload, type Overload } from '../overload.ts';
import { type Run, round } from '../run.ts';

export async function overload({ bench, quick }: Run) {
  const overload = await benchOverload(bench, quick ? 5 : 30);
  const column = ({ ingestMb, ...of }: Overload) => ({
    'accepted when publishers wait, events/s': round(of.capacityPerS),
    'offered, events/s': round(of.offeredPerS),
    'accepted under that load, events/s': round(of.acceptedPerS),
    answers: JSON.stringify(of.answers),
    'p99 of a response, ms': round(of.answerP99Ms),
    'memory of ingest before, at most, after, MB': `${round(ingestMb.before)}, ${round(ingestMb.peak)}, ${round(ingestMb.after)}`,
    'memory of the worker at most, MB': round(of.workerPeakMb),
    'health checks failed, slowest in ms': `${of.failed} of ${of.checks}, ${round(of.slowestMs)}`,
    'deliveries owed, arrived': `${of.deliveries}, ${of.arrived}`,
  });
  console.log('Overload: ten times the events that ingest accepts; publishers do not wait for responses');
  const [batches, singles] = [column(overload.batches), column(overload.singles)];
  console.table(
    Object.fromEntries(
      Object.entries(batches).map(([name, value]) => [
        name,
        { 'batches of 500': value, 'single events': singles[name as keyof typeof singles] },
      ]),
    ),
  );
  return overload;
}
