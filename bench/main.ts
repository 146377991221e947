/**
 * `npm run bench`: measures Posthorn and its baselines for docs/figures.md, and prints tables and JSON.
 * `--quick` runs a tenth; with `--always` Redis writes to disk before it replies.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { join } from 'node:path';
import { readArguments, stopWith } from '../scripts/arguments.ts';
import { buildApps } from '../scripts/build-apps.ts';
import { compareSystem } from './compare.ts';
import { benchDeliveries } from './deliveries.ts';
import { benchDirectory, type DirectoryFigures } from './directory.ts';
import { benchFanOut, benchLatency } from './fan-out.ts';
import { type Health, openBench } from './harness.ts';
import { benchAckReplicas, benchIngest } from './ingest.ts';
import { benchIsolation, type Latency } from './isolation.ts';
import { benchKilled, type Killed } from './killed.ts';
import { benchLists } from './lists.ts';
import { benchMemory } from './memory.ts';
import { benchOverload, type Overload } from './overload.ts';
import { benchRecovery } from './recovery.ts';
import { benchProcessMemory, benchStart } from './start-up.ts';
import { openTarget, startPlain, startPosthorn } from './systems.ts';
import { readTarget } from './targets.ts';
import { benchTracingLoaded, benchTracingPaced, type Estimate, type PacedCost, type TracingCost } from './tracing.ts';

const PARTS = [
  'deliveries',
  'ingest',
  'memory',
  'fan-out',
  'latency',
  'compare',
  'lists',
  'directory',
  'isolation',
  'recovery',
  'killed',
  'processes',
  'overload',
  'tracing',
] as const;
type Part = (typeof PARTS)[number];
const { quick, always, only, target } = readArguments({
  quick: { type: 'boolean', default: false },
  always: { type: 'boolean', default: false },
  only: { type: 'string' },
  target: { type: 'string' },
});
if (only !== undefined && !PARTS.some((part) => part === only)) stopWith(`--only takes one of ${PARTS.join(', ')}.`);
const size = (full: number) => (quick ? full / 10 : full);
const rounds = quick ? 1 : 5;
const wants = (name: Part) => only === undefined || only === name;
const round = (value: number, digits = 0) => Number(value.toFixed(digits));

console.log(`Node ${process.version}, ${cpus().length} cores. The machine may be noisy: compare the ratios.\n`);
await buildApps(console.log);
const bench = await openBench(always ? 'always' : 'everysec');
const results: Record<string, unknown> = { node: process.version, cores: cpus().length, at: new Date().toISOString() };

if (wants('deliveries')) {
  const { idle, ...runs } = await benchDeliveries(bench, size(50_000), Math.min(rounds, 3));
  results.deliveries = { ...runs, idle };
  const { plain, posthorn, partitioned, withoutIds } = runs;
  console.log('Deliveries: one worker process empties a backlog (median of runs)');
  const row = (figure: keyof typeof plain, goal: string, goalOf16 = '') => ({
    plain: round(plain[figure]),
    Posthorn: round(posthorn[figure]),
    ratio: round(posthorn[figure] / plain[figure], 2),
    goal,
    '16 partitions': round(partitioned[figure]),
    'ratio to one': round(partitioned[figure] / posthorn[figure], 2),
    'without ids': round(withoutIds[figure]),
    'to one': round(withoutIds[figure] / posthorn[figure], 2),
    'goal of 16': goalOf16,
  });
  console.table({
    'deliveries/s': row('deliveriesPerS', '>= 1.6'),
    'worker CPU, µs/delivery': row('workerCpuUs', '<= 0.5', '<= 1.1'),
    'Redis CPU, µs/delivery': row('redisCpuUs', '<= 1.2', '<= 1.1'),
  });
  console.log('A worker with nothing to do, 16 partitions');
  console.table({
    'CPU, % of a core': { worker: round(idle.cpuPercent, 1), goal: '<= 1' },
    'commands/s, those in scripts included': { worker: round(idle.commandsPerS), goal: '<= 100' },
  });
}
if (wants('ingest')) {
  const many = size(10_000);
  const figures = await benchIngest(bench, size(4_000), rounds, many);
  const replicated = await benchAckReplicas(bench, size(4_000), rounds);
  results.ingest = { ...figures, replicated };
  const row = (of: (typeof figures)['plain']) => ({
    'events/s': round(of.eventsPerS),
    'p50 ms': round(of.p50Ms, 1),
    'p99 ms': round(of.p99Ms, 1),
    'CPU µs/event': round(of.cpuUsPerEvent),
    'Redis CPU': round(of.redisCpuUsPerEvent),
  });
  console.log('Ingest: single events, 20 concurrent publishers');
  console.table({
    'plain: express, zod, one job': row(figures.plain),
    'Posthorn, no match': row(figures.noMatch),
    'Posthorn, 1 of 1 subscription matches': { ...row(figures.oneOfOne), goal: 'events/s >= plain' },
    'Posthorn, 3 of 3 subscriptions match': row(figures.threeOfThree),
    [`Posthorn, 3 of ${many + 3} match`]: row(figures.threeOfMany),
    'Posthorn, 3 of 3 match, a replica beside it': row(replicated.waitsNot),
    'Posthorn, 3 of 3 match, the replica waited for (ACK_REPLICAS=1)': row(replicated.waits),
  });
}
if (wants('tracing')) {
  const paced = await benchTracingPaced(bench, quick ? 8 : 80);
  const loaded = await benchTracingLoaded(bench, quick ? 1 : 8);
  results.tracing = { paced, loaded };
  const interval = ({ middle, from, to }: Estimate) => `${middle.toFixed(3)} (${from.toFixed(3)} to ${to.toFixed(3)})`;
  const row = ({ offCpuUs, onCpuUs, ratio }: TracingCost) => ({
    off: round(offCpuUs),
    on: round(onCpuUs),
    'on/off (95 % interval)': interval(ratio),
  });
  const pacedRow = (cost: PacedCost) => ({ ...row(cost), 'off/off': interval(cost.control) });
  const goal = '<= 1.05';
  console.log('Tracing: CPU in µs for each event with one delivery, all traces sampled, at 600 events a second');
  console.table({
    ingest: { ...pacedRow(paced.ingest), goal },
    worker: { ...pacedRow(paced.worker), goal },
    Redis: pacedRow(paced.redis),
  });
  console.log(
    'Under full load, beside processes that never load OpenTelemetry: ingest for an event, a worker for a delivery',
  );
  console.table({ ingest: { ...row(loaded.ingest), goal }, worker: { ...row(loaded.worker), goal } });
}
if (wants('memory')) {
  const { pendingBytes, finishedBytes, where, residentMb } = await benchMemory(bench, size(20_000), size(100_000));
  results.memory = { pendingBytes, finishedBytes, where, residentMb };
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
}
if (wants('fan-out')) {
  const fanOut = await benchFanOut(bench, [100, size(1_000)], quick ? 3 : 10);
  results.fanOut = fanOut;
  console.log('Fan-out of one event, ms (median): until all have it, and until the publisher has its response');
  console.table(
    fanOut.map(({ size: addresses, requests, plain, posthorn }) => ({
      addresses,
      'the requests alone': round(requests.fanOutMs),
      'plain: all have it': round(plain.fanOutMs),
      'Posthorn: all have it': round(posthorn.fanOutMs),
      goal: addresses === 100 ? '<= 15' : '',
      'plain: response': round(plain.fanOutPublishMs),
      'Posthorn: response': round(posthorn.fanOutPublishMs),
    })),
  );
}
if (wants('latency')) {
  const latency = await benchLatency(bench, size(1_000), quick ? 3 : 20);
  results.latency = latency;
  const row = ({ p50Ms, p99Ms }: { p50Ms: number; p99Ms: number }) => ({
    'p50 ms': round(p50Ms, 1),
    'p99 ms': round(p99Ms, 1),
  });
  console.log('From publishing to arrival, 100 events a second');
  console.table({ plain: row(latency.plain), Posthorn: { ...row(latency.posthorn), goal: 'p50 <= 3' } });
  console.log(`Responses to single events beside one event to ${size(1_000)} addresses a second`);
  const { aloneP99Ms, disturbedP99Ms } = latency.beside;
  console.table({ alone: { 'p99 ms': round(aloneP99Ms, 1) }, beside: { 'p99 ms': round(disturbedP99Ms, 1) } });
}
if (wants('compare')) {
  const sizes = { events: size(20_000), fanOuts: quick ? 3 : 10, seconds: quick ? 3 : 20 };
  const other = target === undefined ? undefined : readTarget(target);
  const comparisons = [];
  // Each with a Redis of its own: one that has just done other work uses more memory.
  for (const [name, always] of [
    ['Posthorn', false],
    ['Posthorn, always', true],
    ['plain BullMQ + got', false],
  ] as const) {
    const own = await openBench(always ? 'always' : 'everysec', name);
    const start = name.startsWith('plain') ? startPlain : startPosthorn;
    const system = await start(own, name, other?.fanOut ?? 100);
    comparisons.push(await compareSystem(system, sizes));
    await system.stop();
    await own.close();
  }
  if (other) {
    const system = await openTarget(bench, other);
    comparisons.push(await compareSystem(system, sizes));
    await system.stop();
  }
  results.compare = comparisons;
  console.log('Single events from 20 publishers, one signed delivery each; then a fan-out; then 100 events a second');
  const goals = {
    'CPU µs a delivery': '<= 600',
    'services, MB': '<= 350',
    'fan-out, ms': '<= 15',
    'arrival p50, ms': '<= 3',
  };
  console.table({
    ...Object.fromEntries(
      comparisons.map((of) => [
        of.name,
        {
          'CPU µs a delivery': round(of.servicesCpuUs + of.storesCpuUs),
          'of services': round(of.servicesCpuUs),
          'of stores': round(of.storesCpuUs),
          'deliveries/s': round(of.deliveriesPerS),
          'services, MB': round(of.servicesMb),
          'fan-out, ms': round(of.fanOutMs),
          'arrival p50, ms': round(of.p50Ms, 1),
          'p99, ms': round(of.p99Ms, 1),
        },
      ]),
    ),
    'goal for Posthorn': goals,
  });
}
if (wants('processes')) {
  const started = await benchStart(bench, rounds);
  console.log('Start of a process, until it is ready (median of runs)');
  console.table(
    Object.fromEntries(
      Object.entries(started).map(([name, { ms, cpuMs }]) => [
        name,
        { ms: round(ms), 'CPU, ms': round(cpuMs), goal: name.startsWith('plain') ? '' : '<= 1000 ms' },
      ]),
    ),
  );
  const events = size(20_000);
  const memory = await benchProcessMemory(bench, events);
  results.processes = { started, memory };
  const row = ({ mb, ownMb, cpuUs }: (typeof memory)['plain']) => {
    const [ingest = 0, worker = 0, operator = 0] = mb.map((one) => round(one));
    const together = ingest + worker + operator;
    const own = { 'without shared files': round(ownMb), 'CPU µs/delivery': round(cpuUs) };
    return { ingest, worker, console: operator, together, ...own };
  };
  console.log(`Memory of the processes after ${events} deliveries, MB`);
  console.table({ plain: row(memory.plain), Posthorn: row(memory.posthorn), goal: { together: '<= 350' } });
}
if (wants('lists')) {
  const [few, many] = [1_000, size(1_000_000)];
  const fromFew = await benchLists(bench, few, 50);
  const fromMany = await benchLists(bench, many, 50);
  results.lists = { few: fromFew, many: fromMany };
  console.log('Lists: a page of 50 deliveries over the API, median ms');
  console.table(
    Object.fromEntries(
      Object.entries(fromFew).map(([name, ms]) => [
        name,
        {
          [`of ${few}`]: round(ms, 1),
          [`of ${many}`]: round(fromMany[name]!, 1),
          ratio: round(fromMany[name]! / ms, 2),
        },
      ]),
    ),
  );
}
if (wants('directory')) {
  const sizes = [1_000, size(10_000), size(100_000)];
  const figures: ({ count: number } & DirectoryFigures)[] = [];
  for (const count of sizes) figures.push({ count, ...(await benchDirectory(bench, count, size(200))) });
  results.directory = figures;
  console.log('Directory: what a console keeps in memory of each subscription, the load after a start, and searches');
  console.table(
    Object.fromEntries(
      figures.map(({ count, bytesEach, load }) => [
        count,
        {
          'bytes each': round(bytesEach),
          'load, ms': round(load.ms),
          'CPU of the load, ms': round(load.cpuMs),
          'longest turn of it, CPU ms': round(load.turnMs, 1),
        },
      ]),
    ),
  );
  const table = (header: string, of: (search: (typeof figures)[number]['searches'][string]) => number | string) => {
    console.log(header);
    const names = Object.keys(figures[0]?.searches ?? {});
    const row = (name: string) => figures.map(({ count, searches }) => [`of ${count}`, of(searches[name]!)]);
    console.table(Object.fromEntries(names.map((name) => [name, Object.fromEntries(row(name))])));
  };
  table('Searches: p50 ms (p99)', ({ p50Ms, p99Ms }) => `${round(p50Ms, 1)} (${round(p99Ms, 1)})`);
  table('CPU ms a search', ({ cpuMs }) => round(cpuMs, 2));
  table('Longest turn of the event loop, CPU ms', ({ turnMs }) => round(turnMs, 1));
}
if (wants('isolation')) {
  const isolation = await benchIsolation(bench, quick ? 5 : 20, size(100_000), size(20_000));
  results.isolation = isolation;
  const row = ({ p50Ms, p99Ms, arrivals, mostInFlightAtBad }: Latency) => ({
    'p50 ms': p50Ms,
    'p99 ms': p99Ms,
    'p99 ratio': round(p99Ms / isolation.alone.p99Ms, 2),
    arrivals,
    'in flight at the bad host': mostInFlightAtBad ?? '',
  });
  console.log('Isolation: from publishing to arrival at 45 healthy addresses, one worker');
  console.table({
    'no bad ones': row(isolation.alone),
    '5 more that never answer, as many events each': row(isolation.hanging),
    '5 more that answer after 900 ms': row(isolation.slow),
    [`a dead one with a backlog of ${size(100_000)}`]: row(isolation.backlog),
    [`a dead one that gets ${size(20_000)} at once`]: row(isolation.burst),
    '12 hosts that respond soon and then hang together': row(isolation.turning),
    '300 addresses on one host that hangs': row(isolation.oneHost),
  });
}
if (wants('recovery')) {
  const recovery = await benchRecovery(bench, size(20_000), size(50_000), size(10_000));
  results.recovery = recovery;
  const health = ({ failed, checks, slowestMs, loopMs }: Health) => ({
    'health checks failed': `${failed} of ${checks}`,
    'slowest, ms': round(slowestMs),
    'event loop blocked, ms': round(loopMs),
  });
  console.log(`${size(20_000)} retries due in the same second, 40 addresses`);
  console.table(
    recovery.atOnce.map((of) => ({
      workers: of.workers,
      'first after ms': round(of.firstMs),
      'p50 ms': round(of.p50Ms),
      'last ms': round(of.lastMs),
      'p99 of others, ms': of.healthyP99Ms,
      ...health(of),
    })),
  );
  console.log('Release of waiting deliveries: at most RELEASE_RATE (50) a second to one address');
  const { late, resumed } = recovery;
  console.table({
    [`${size(50_000)} retries an hour late, 10 addresses`]: {
      'took s': round(late.seconds),
      'most in a second': late.mostInASecond,
      'p99 of others, ms': late.healthyP99Ms,
      'alone, ms': late.healthyAloneP99Ms,
      ...health(late),
    },
    [`${size(10_000)} held, one address`]: {
      'took s': round(resumed.seconds),
      'most in a second': resumed.mostInASecond,
      ...health(resumed),
    },
  });
}
if (wants('killed') || only === 'recovery') {
  const killed = await benchKilled(bench);
  results.killed = killed;
  const row = (of: Killed) => ({
    accepted: of.accepted,
    lost: of.lost,
    'not arrived yet': of.unfinished,
    'all processes ready after s': round(of.startedMs / 1_000, 1),
    'first of them arrives after s': round(of.firstMs / 1_000, 1),
    'last of them arrives after s': round(of.allDoneMs / 1_000, 1),
    'responded to twice': of.sentTwice,
  });
  for (const { perS, receiverMs, plain, posthorn } of killed) {
    console.log(
      `All processes killed (SIGKILL) at ${perS} events a second, each with a delivery that takes ${receiverMs} ms, and started again at once; times since the kill`,
    );
    console.table({
      plain: row(plain),
      Posthorn: row(posthorn),
      goal: { lost: 0, 'last of them arrives after s': '<= 5' },
    });
  }
}
if (wants('overload')) {
  const overload = await benchOverload(bench, quick ? 5 : 30);
  results.overload = overload;
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
}
await bench.close();
const folder = join(import.meta.dirname, 'results');
mkdirSync(folder, { recursive: true });
const file = join(folder, 'latest.json');
writeFileSync(file, `${JSON.stringify(results, null, 2)}\n`);
console.log('JSON: bench/results/latest.json');
