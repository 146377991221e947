/**
 * All processes of a system are killed under load and started again: how long until what was in flight goes on, and
 * what is lost or sent twice.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { type Bench, until } from './harness.ts';
import { type System, startPlain, startPosthorn } from './systems.ts';

/**
 * `receiverMs` is long enough that many attempts are in flight. At the lower rate it is also so long that the receiver
 * notices the closed connections before it responds.
 */
const LOADS = [
  { perS: 200, receiverMs: 300 },
  { perS: 1_000, receiverMs: 50 },
] as const;
type Load = (typeof LOADS)[number];
const SECONDS = 3;
/** BullMQ takes over the jobs of a dead worker after up to a minute. */
const MAX_RECOVERY_MS = 120_000;

export interface Killed {
  accepted: number;
  lost: number;
  /**
   * Number of events that had not arrived when the processes were killed, and the time from the kill to the last of
   * them.
   */
  unfinished: number;
  allDoneMs: number;
  /** From the kill until all processes were ready again. */
  startedMs: number;
  firstMs: number;
  sentTwice: number;
}

/** Each system under each load. */
export async function benchKilled(bench: Bench): Promise<(Load & { plain: Killed; posthorn: Killed })[]> {
  const settings = { ADDRESS_CONCURRENCY: '100' };
  const results = [];
  for (const load of LOADS) {
    const options = { delayMs: load.receiverMs };
    const posthorn = await killUnderLoad(await startPosthorn(bench, 'Posthorn', 1, { ...options, settings }), load);
    const plain = await killUnderLoad(await startPlain(bench, 'plain', 1, options), load);
    results.push({ ...load, plain, posthorn });
  }
  return results;
}

async function killUnderLoad(system: System, { perS }: Load): Promise<Killed> {
  const accepted = new Set<string>();
  const calls: Promise<void>[] = [];
  const startedAtMs = Date.now();
  const { restart } = system;
  if (!restart) throw new Error(`${system.name} can't be started again`);
  for (let i = 0; i < SECONDS * perS; i++) {
    await pause(Math.max(0, startedAtMs + (i * 1000) / perS - Date.now()));
    const id = `bench-${randomUUID()}`;
    const publish = async () => {
      await system.publish(id);
      accepted.add(id);
    };
    // An event is accepted only if its call got a response: the kill ends some calls without one.
    calls.push(publish().catch(() => undefined));
  }
  const killedAtMs = Date.now();
  await restart();
  const startedMs = Date.now() - killedAtMs;
  await Promise.all(calls);

  const arrivedAtMs = new Map<string, number>();
  let arrivals = 0;
  const read = async () => {
    const response = await fetch(`${system.receiver.url}/arrivals`);
    for (const { id, atMs } of (await response.json()) as { id: string; atMs: number }[]) {
      arrivals += 1;
      if (!arrivedAtMs.has(id)) arrivedAtMs.set(id, atMs);
    }
    await pause(50);
    return [...accepted].every((id) => arrivedAtMs.has(id));
  };
  await until('what was in flight', read, MAX_RECOVERY_MS).catch((error: Error) => console.error(error.message));
  await system.stop();
  const late = [...arrivedAtMs].flatMap(([id, atMs]) => (accepted.has(id) && atMs > killedAtMs ? [atMs] : []));
  return {
    accepted: accepted.size,
    lost: [...accepted].filter((id) => !arrivedAtMs.has(id)).length,
    unfinished: late.length,
    firstMs: Math.min(...late) - killedAtMs,
    allDoneMs: Math.max(...late) - killedAtMs,
    startedMs,
    sentTwice: arrivals - arrivedAtMs.size,
  };
}
