/**
 * Measures systems by the same calls: CPU and deliveries a second under load, memory, a fan-out, and how long an event
 * takes to arrive.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { descendantsOf } from '../scripts/process-tree.ts';
import { countOf, inParallel, median, percentile, processUsage, until } from './harness.ts';
import type { System } from './systems.ts';

/** Publishers that wait for their responses. */
const CONCURRENCY = 20;
const PER_S = 100;
const FAN_OUTS_PER_S = 10;
/**
 * Deliveries of fan-outs before the first one that is measured: Node compiles what runs often, and connections are
 * open.
 */
const WARM_UP = 5_000;
/** Wait before the receiver is asked for arrivals, so that asking costs the measured processes nothing. */
const ASK_AFTER_MS = 10;
/** Time for what happens after an arrival (records, statistics) before the next measurement. */
const SETTLE_MS = 1_500;

interface Comparison {
  name: string;
  deliveriesPerS: number;
  servicesCpuUs: number;
  storesCpuUs: number;
  servicesMb: number;
  fanOutMs: number;
  fanOutPublishMs: number;
  p50Ms: number;
  p99Ms: number;
}

interface Arrived {
  id: string;
  atMs: number;
}

const nowMs = () => performance.timeOrigin + performance.now();
const newId = () => `bench-${randomUUID()}`;

export async function compareSystem(
  system: System,
  sizes: { events: number; fanOuts: number; seconds: number },
): Promise<Comparison> {
  await load(system, Math.ceil(sizes.events / 5));
  const underLoad = await load(system, sizes.events);
  const fanOuts = await measureFanOut(system, sizes.fanOuts);
  const ages = await measureLatency(system, sizes.seconds);
  return {
    name: system.name,
    ...underLoad,
    ...fanOuts,
    p50Ms: percentile(ages, 0.5),
    p99Ms: percentile(ages, 0.99),
  };
}

/** Publishes events, waits until all have arrived, and counts the CPU of all processes. */
async function load(system: System, events: number) {
  await readArrivals(system);
  const before = await usageOf(system);
  const startedAtMs = nowMs();
  await inParallel(events, CONCURRENCY, () => system.publish(newId()));
  const arrivals = await allArrived(system, events);
  const seconds = (lastOf(arrivals) - startedAtMs) / 1000;
  await pause(SETTLE_MS);
  const after = await usageOf(system);
  return {
    deliveriesPerS: events / seconds,
    servicesCpuUs: (after.services.cpuUs - before.services.cpuUs) / events,
    storesCpuUs: (after.stores.cpuUs - before.stores.cpuUs) / events,
    servicesMb: after.services.residentBytes / 1e6,
  };
}

/** What a fan-out needs of a system. */
type FanOutSystem = Pick<System, 'name' | 'publishToAll' | 'fanOut' | 'receiver'>;

/** One event to all addresses, again and again: until the response, and until the last delivery arrives. */
export async function measureFanOut(system: FanOutSystem, rounds: number) {
  const [fanOutMs, fanOutPublishMs]: [number[], number[]] = [[], []];
  await readArrivals(system);
  for (let round = -Math.ceil(WARM_UP / system.fanOut); round < rounds; round++) {
    const startedAtMs = nowMs();
    await system.publishToAll(newId());
    const respondedAtMs = nowMs();
    await pause(ASK_AFTER_MS);
    const arrivals = await allArrived(system, system.fanOut);
    if (round < 0) continue;
    await pause(SETTLE_MS / 10);
    fanOutMs.push(lastOf(arrivals) - startedAtMs);
    fanOutPublishMs.push(respondedAtMs - startedAtMs);
  }
  return { fanOutMs: median(fanOutMs), fanOutPublishMs: median(fanOutPublishMs) };
}

/** The time from publishing to arrival of each event, at a fixed rate, whether the system keeps up or not. */
export async function measureLatency(system: System, seconds: number): Promise<number[]> {
  return await agesOnArrival(system, system.publish, seconds * PER_S, PER_S, 1);
}

/**
 * The same for one event after the other to all addresses: while all respond, and from the moment on at which `hanging`
 * of them never respond again.
 */
export async function measureHanging(system: System, hanging: number, events: number) {
  await load(system, WARM_UP);
  const responding = system.fanOut - hanging;
  const measure = (arrivalsOfEach: number) =>
    agesOnArrival(system, system.publishToAll, events, FAN_OUTS_PER_S, arrivalsOfEach);
  const alone = await measure(system.fanOut);
  await fetch(`${system.receiver.url}/hang-from/${responding}`);
  return { alone, beside: await measure(responding) };
}

async function agesOnArrival(
  system: System,
  publish: System['publish'],
  events: number,
  perS: number,
  arrivalsOfEach: number,
): Promise<number[]> {
  await readArrivals(system);
  const sentAtMs = new Map<string, number>();
  const calls: Promise<void>[] = [];
  const startedAtMs = nowMs();
  for (let i = 0; i < events; i++) {
    await pause(Math.max(0, startedAtMs + (i * 1000) / perS - nowMs()));
    const id = newId();
    sentAtMs.set(id, nowMs());
    calls.push(publish(id));
  }
  await Promise.all(calls);
  const arrivals = await allArrived(system, events * arrivalsOfEach);
  return arrivals.map(({ id, atMs }) => atMs - (sentAtMs.get(id) ?? Number.NaN));
}

async function readArrivals({ receiver }: Pick<System, 'receiver'>): Promise<Arrived[]> {
  return (await (await fetch(`${receiver.url}/arrivals`)).json()) as Arrived[];
}

async function allArrived(system: Pick<System, 'name' | 'receiver'>, count: number): Promise<Arrived[]> {
  await until(`${count} deliveries of ${system.name}`, async () => (await countOf(system.receiver)) >= count);
  return await readArrivals(system);
}

function lastOf(arrivals: readonly Arrived[]): number {
  return arrivals.reduce((last, { atMs }) => Math.max(last, atMs), 0);
}

async function usageOf({ pids }: System) {
  const sum = async (roots: readonly number[]) => {
    const all = new Set(roots.flatMap((pid) => [pid, ...descendantsOf(pid)]));
    const usages = await Promise.all([...all].map(processUsage));
    return {
      cpuUs: usages.reduce((total, { cpuUs }) => total + cpuUs, 0),
      residentBytes: usages.reduce((total, { residentBytes }) => total + residentBytes, 0),
    };
  };
  return { services: await sum(pids.services), stores: await sum(pids.stores) };
}
