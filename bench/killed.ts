/** All processes of a system are killed under load and started again: how long until what was in flight goes on, and what is lost or sent twice. */
import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { type Bench, until } from './harness.ts';
import { type System, startPlain, startPosthorn } from './systems.ts';

const PER_S = 200;
const SECONDS = 3;
/** So slow that many attempts are in flight and the receiver sees that their connections are gone before it responds. */
const RECEIVER_MS = 300;
/** BullMQ takes over the jobs of a dead worker after up to a minute. */
const MAX_RECOVERY_MS = 120_000;

export interface Killed {
  accepted: number;
  lost: number;
  /** Events that had not arrived when the processes were killed, and from the kill to the last of them. */
  unfinished: number;
  allDoneMs: number;
  /** From the kill until all processes were ready again. */
  startedMs: number;
  firstMs: number;
  sentTwice: number;
}

export async function benchKilled(bench: Bench): Promise<{ plain: Killed; posthorn: Killed }> {
  const options = { delayMs: RECEIVER_MS };
  const settings = { ADDRESS_CONCURRENCY: '100' };
  return {
    posthorn: await killUnderLoad(await startPosthorn(bench, 'Posthorn', 1, { ...options, settings })),
    plain: await killUnderLoad(await startPlain(bench, 'plain', 1, options)),
  };
}

async function killUnderLoad(system: System): Promise<Killed> {
  const accepted = new Set<string>();
  const calls: Promise<void>[] = [];
  const startedAtMs = Date.now();
  const { restart } = system;
  if (!restart) throw new Error(`${system.name} can't be started again`);
  for (let i = 0; i < SECONDS * PER_S; i++) {
    await pause(Math.max(0, startedAtMs + (i * 1000) / PER_S - Date.now()));
    const id = `bench-${randomUUID()}`;
    const publish = async () => {
      await system.publish(id);
      accepted.add(id);
    };
    // Calls that get no response because ingest was killed owe nothing.
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
