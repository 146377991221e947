/** Pods that are replaced while events come in, in the order in which Kubernetes does it with the chart's preStop. */
import { Agent, request } from 'node:http';
import { describe, expect, it } from '@jest/globals';
import { deliveriesWith, eventually, isDelivery } from '@posthorn/testing';
import { atEnd, ownApps, ownEnv, ownProcess, ownReceiver } from './own.ts';
import type { Process, ProcessName } from './processes.ts';
import { PUBLISHER_KEY, sampleEvent } from './world.ts';

const PUBLISHERS = 8;
/** Calls that proxies still send to a pod after it was told to go: they hear of it later than the pod. */
const LATE_CALLS = 100;

/** A proxy that knows which pods there are balances connections, as a Service does: every call is a new one. */
const agent = new Agent({ keepAlive: false });

/** Publishes an event. Resolves with the status and the id; with the code of the error if the connection fails. */
function publish(url: string): Promise<{ outcome: number | string; id: string }> {
  return new Promise((resolve) => {
    const headers = { authorization: `Bearer ${PUBLISHER_KEY}`, 'content-type': 'application/json' };
    const call = request(`${url}/v1/events`, { method: 'POST', agent, headers }, async (response) => {
      const chunks: Buffer[] = [];
      try {
        for await (const chunk of response) chunks.push(chunk as Buffer);
        resolve({ outcome: response.statusCode ?? 0, id: JSON.parse(Buffer.concat(chunks).toString()).id });
      } catch (error) {
        resolve({ outcome: (error as NodeJS.ErrnoException).code ?? 'unknown', id: '' });
      }
    });
    call.once('error', (error: NodeJS.ErrnoException) => resolve({ outcome: error.code ?? 'unknown', id: '' }));
    call.end(JSON.stringify(sampleEvent()));
  });
}

/** Two pods of ingest behind a Service, two workers, and publishers that always have a call open. */
async function loadedSystem() {
  const env = ownEnv();
  const apps = await ownApps(env);
  const to = await ownReceiver(deliveriesWith(200));
  await apps.subscribe(to.url);
  /**
   * Publishers wait for it before each call: they pause while a process starts, which takes long and proves nothing.
   */
  let mayCall: Promise<void> = Promise.resolve();
  const start = async (app: ProcessName) => {
    const paused = Promise.withResolvers<void>();
    mayCall = paused.promise;
    const process = ownProcess(app, env);
    const { url } = await process.ready;
    paused.resolve();
    return { process, url };
  };
  const pods = [{ process: apps.ingest, url: apps.ingestUrl }, await start('ingest')];
  const workers = [{ process: apps.worker }, await start('worker')];
  /** What the proxies know. */
  const endpoints = pods.map(({ url }) => url);
  /** Calls that have no response yet, by pod. */
  const open = new Map<string, number>();
  const results: Awaited<ReturnType<typeof publish>>[] = [];
  let isLoading = true;
  atEnd(() => {
    isLoading = false;
  });
  const load = Promise.all(
    Array.from({ length: PUBLISHERS }, async () => {
      for (let call = 0; isLoading; call++) {
        await mayCall;
        const url = endpoints[call % endpoints.length]!;
        open.set(url, (open.get(url) ?? 0) + 1);
        results.push(await publish(url));
        open.set(url, (open.get(url) ?? 0) - 1);
      }
    }),
  );
  const calls = async (count: number) => {
    const goal = results.length + count;
    await eventually(`${count} calls`, () => results.length >= goal);
  };
  /** The proxies learn that a pod is gone; the calls that they have sent to it end. */
  const forget = async (url: string) => {
    endpoints.splice(endpoints.indexOf(url), 1);
    await eventually('its calls to end', () => open.get(url) === 0);
  };
  return {
    forget,
    deliveries: apps.deliveries,
    to,
    start,
    pods,
    workers,
    endpoints,
    results,
    calls,
    async endLoad() {
      isLoading = false;
      await load;
    },
  };
}

const terminate = ({ process }: { process: Process }) => {
  process.child.kill('SIGTERM');
  return process.ended;
};

describe('a rolling update under load', () => {
  it('refuses no event, delivers each once, and ends every old process with 0', async () => {
    const { deliveries, to, start, pods, workers, endpoints, forget, results, calls, endLoad } = await loadedSystem();
    for (const old of pods) {
      const fresh = await start('ingest');
      endpoints.push(fresh.url);
      // The pod is told to go. preStop lets it serve until the proxies know; only then it gets SIGTERM.
      await calls(LATE_CALLS);
      await forget(old.url);
      expect(await terminate(old)).toBe(0);
      await calls(LATE_CALLS);
    }
    for (const old of workers) {
      await start('worker');
      expect(await terminate(old)).toBe(0);
      await calls(LATE_CALLS);
    }
    await endLoad();
    expect(new Set(results.map(({ outcome }) => outcome))).toEqual(new Set([202]));
    expect(results.length).toBeGreaterThanOrEqual(6 * LATE_CALLS);
    await to.received(results.length, isDelivery);
    await eventually(
      'every delivery to be recorded',
      async () => (await deliveries('status=pending&limit=1')).length === 0,
    );
    const arrived = to.requests.filter(isDelivery).map(({ headers }) => String(headers['service-event-id']));
    expect(arrived.sort()).toEqual(results.map(({ id }) => id).sort());
  });
  it('refuses events without the drain, which shows that the chart needs it', async () => {
    const { pods, endpoints, results, calls, endLoad } = await loadedSystem();
    await calls(LATE_CALLS);
    expect(await terminate(pods[1]!)).toBe(0);
    // The proxies hear of it only now.
    await calls(LATE_CALLS);
    endpoints.pop();
    await endLoad();
    expect(results.map(({ outcome }) => outcome)).toContain('ECONNREFUSED');
  });
});
