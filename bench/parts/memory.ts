/**
 * Bytes of Redis for an event with a delivery, and the memory of a worker over a long run: `npm run bench --
 * --only=memory`.
 */
import { benchMemory } from '../memory.ts';
import { type Run, round } from '../run.ts';

export async function memory({ bench, size }: Run) {
  const { pendingBytes, finishedBytes, where, residentMb } = await benchMemory(bench, size(20_000), size(100_000));
  console.log('Memory: one 400-byte event to one address each');
  console.table({
    'Redis bytes, pending delivery and its event': { bytes: round(pendingBytes), goal: '<= 900' },
    'Redis bytes, finished delivery and its event': { bytes: round(finishedBytes), goal: '<= 600' },
  });
  console.log('Where the bytes are, by kind of key, per delivery');
  const kinds = new Set([...Object.keys(where.pending), ...Object.keys(where.finished)]);
  const bytes = (of: number | undefined) => round(of ?? 0);
  console.table(
    Object.fromEntries(
      Array.from(kinds, (kind) => [
        kind,
        { pending: bytes(where.pending[kind]), finished: bytes(where.finished[kind]) },
      ]),
    ),
  );
  console.log('Resident memory of the worker over a long run');
  console.table(residentMb.map(({ deliveries, mb }) => ({ deliveries, MB: round(mb) })));
  return { pendingBytes, finishedBytes, where, residentMb };
}
