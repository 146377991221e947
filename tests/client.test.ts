/** packages/client against ingest processes that are killed and started again under load. */
import { expect, it } from '@jest/globals';
import { createPublisher } from '@posthorn/client';
import { eventually, isDelivery } from '@posthorn/testing';
import { freePort } from '../scripts/free-port.ts';
import { atEnd, ownApps, ownEnv, ownProcess, ownReceiver } from './own.ts';
import { PUBLISHER_KEY, sampleEvent } from './world.ts';

const KILLS = 3;
const LEAST_EVENTS = 600;

it('everything that the client acknowledged arrives, although ingest is killed and started again under load', async () => {
  const env = ownEnv();
  const port = String(await freePort());
  const apps = await ownApps(env, { ingest: { PORT: port } });
  const to = await ownReceiver();
  await apps.subscribe(to.url);
  const publisher = createPublisher({
    url: `http://127.0.0.1:${port}`,
    key: PUBLISHER_KEY,
    maxEvents: 200,
    maxBatch: 20,
  });
  atEnd(() => publisher.close(0));

  const acknowledged: string[] = [];
  let isLoading = true;
  const load = (async () => {
    const published: Promise<unknown>[] = [];
    for (let i = 0; isLoading || i < LEAST_EVENTS; i++) {
      await publisher.ready();
      const event = sampleEvent({ id: `evt_${i}` }) as unknown as Parameters<typeof publisher.publish>[0];
      published.push(publisher.publish(event).then(({ id }) => acknowledged.push(id)));
    }
    await Promise.all(published);
  })();

  let { ingest } = apps;
  for (let kill = 0; kill < KILLS; kill++) {
    const before = acknowledged.length;
    await eventually('some to be acknowledged', () => acknowledged.length >= before + 50);
    ingest.child.kill('SIGKILL');
    await ingest.ended;
    ingest = ownProcess('ingest', { ...env, PORT: port });
    await ingest.ready;
  }
  isLoading = false;
  await load;
  await publisher.close();
  const arrived = () => new Set(to.requests.filter(isDelivery).map(({ headers }) => headers['service-event-id']));
  await eventually('all to arrive', () => acknowledged.every((id) => arrived().has(id)));
  expect(acknowledged.length).toBeGreaterThanOrEqual(LEAST_EVENTS);
  expect(new Set(acknowledged).size).toBe(acknowledged.length);
});
