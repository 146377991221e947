/**
 * The systems that `compare` measures by the same calls: Posthorn, a plain one of BullMQ and got, and any other over
 * HTTP.
 */
import { randomUUID } from 'node:crypto';
import {
  type Bench,
  type BenchProcess,
  type EventType,
  event400,
  PUBLISHER_KEY,
  post,
  subscribeMany,
} from './harness.ts';
import { type CallTemplate, callTo, type Target } from './targets.ts';

/** Where the events of the built-in systems carry their id, as Posthorn and the plain worker send it. */
export const ID_IN_REFERENCE = '"reference":"(bench-[^"]+)"';

export interface System {
  name: string;
  /** Publishes an event with this id to one address; resolves when it is accepted. */
  publish(id: string): Promise<void>;
  /** The same to `fanOut` addresses. */
  publishToAll(id: string): Promise<void>;
  fanOut: number;
  receiver: BenchProcess;
  /** The ids of its processes, including all that they have started. */
  pids: { services: number[]; stores: number[] };
  /**
   * Kills all processes at once and starts them again; resolves when all are ready. Only of systems that the bench
   * starts itself.
   */
  restart?(): Promise<void>;
  stop(): Promise<void>;
}

interface SystemOptions {
  settings?: Record<string, string>;
  /** The time that the receiver takes to respond. */
  delayMs?: number;
}

const startReceiver = (bench: Bench, delayMs: number | undefined) =>
  bench.start('bench/processes/arrivals.ts', {
    PATTERN: ID_IN_REFERENCE,
    ...(delayMs === undefined ? {} : { DELAY_MS: String(delayMs) }),
  });

export async function startPosthorn(
  bench: Bench,
  name: string,
  fanOut: number,
  { settings = {}, delayMs }: SystemOptions = {},
): Promise<System> {
  const receiver = await startReceiver(bench, delayMs);
  const env = { KEY_PREFIX: `bench-${randomUUID()}`, ...settings };
  const starts = (['ingest', 'worker', 'console'] as const).map((app) => () => bench.startApp(app, env));
  return await started(bench, name, { receiver, starts, fanOut }, async ([, , operator]) => {
    const url = String(operator?.url);
    await subscribeMany(url, receiver.url, 1, { event_types: ['session.approved'], environment: 'sandbox' });
    await subscribeMany(url, receiver.url, fanOut, { event_types: ['session.created'], environment: 'sandbox' });
  });
}

export async function startPlain(
  bench: Bench,
  name: string,
  fanOut: number,
  { delayMs }: Pick<SystemOptions, 'delayMs'> = {},
): Promise<System> {
  const receiver = await startReceiver(bench, delayMs);
  const env = { RECEIVER_URL: receiver.url, FAN_OUT: String(fanOut) };
  const starts = [() => bench.startPlain('ingest', env), () => bench.startPlain('worker')];
  return await started(bench, name, { receiver, starts, fanOut });
}

type Started = Pick<System, 'receiver' | 'fanOut'> & { starts: readonly (() => Promise<BenchProcess>)[] };

/** The first process is the one that takes events. */
async function started(
  bench: Bench,
  name: string,
  { receiver, starts, fanOut }: Started,
  setUp: (apps: BenchProcess[]) => Promise<void> = async () => undefined,
): Promise<System> {
  const startAll = () => Promise.all(starts.map((start) => start()));
  let apps = await startAll();
  await setUp(apps);
  const publishTo = (type: EventType) => async (id: string) => {
    const event = event400(type);
    const body = { ...event, data: { ...event.data, reference: id } };
    const { status, text } = await post(`${apps[0]?.url}/v1/events`, PUBLISHER_KEY, body);
    if (status !== 202) throw new Error(`${name}: ${status} ${text}`);
  };
  return {
    name,
    publish: publishTo('session.approved'),
    publishToAll: publishTo('session.created'),
    fanOut,
    receiver,
    get pids() {
      return { services: apps.flatMap(({ child }) => child.pid ?? []), stores: [bench.redisPid] };
    },
    async restart() {
      for (const { child } of apps) child.kill('SIGKILL');
      apps = await startAll();
    },
    async stop() {
      for (const one of [...apps, receiver].reverse()) await one.stop();
      await bench.redis.flushdb();
    },
  };
}

/** A system that runs already; the target says how to call it. */
export async function openTarget(bench: Bench, target: Target): Promise<System> {
  const { host, port, pattern, header, status } = target.receiver;
  const receiver = await bench.start('bench/processes/arrivals.ts', {
    HOST: host,
    PORT: String(port),
    PATTERN: pattern,
    STATUS: String(status),
    ...(header === undefined ? {} : { HEADER: header }),
  });
  const call = async (template: CallTemplate, id: string, number: number) => {
    const { url, init } = callTo(template, { id, receiver: receiver.url, i: String(number) });
    const response = await fetch(url, init);
    const text = await response.text();
    if (!response.ok) throw new Error(`${target.name}: ${init.method} ${url} returned ${response.status} ${text}`);
  };
  for (const step of target.setUp) {
    for (let number = 0; number < step.times; number++) await call(step, randomUUID(), number);
  }
  return {
    name: target.name,
    publish: (id) => call(target.publish, id, 0),
    publishToAll: (id) => call(target.publishToAll, id, 0),
    fanOut: target.fanOut,
    receiver,
    pids: target.pids,
    stop: () => receiver.stop(),
  };
}
