/**
 * Many addresses of one host, or names of one IP, that hang: together they get no more slots than one address, and
 * delay nobody.
 */
import type { ServerResponse } from 'node:http';
import { describe, expect, it } from '@jest/globals';
import { eventually, isDelivery, type Receiver, startNameServer } from '@posthorn/testing';
import { atEnd, ownReceiver, ownWorld } from '../own.ts';
import { sampleEvent, type World } from '../world.ts';

const ADDRESSES = 40;

/** A receiver that does not respond to deliveries until `respond` is called. */
async function hangingReceiver() {
  const open = new Set<ServerResponse>();
  let hangs = true;
  let most = 0;
  const receiver = await ownReceiver((request, response) => {
    if (!hangs || !isDelivery(request)) {
      response.end();
      return;
    }
    open.add(response);
    most = Math.max(most, open.size);
    response.once('close', () => open.delete(response));
  });
  return {
    receiver,
    mostAtOnce: () => most,
    respond() {
      hangs = false;
      for (const response of open) response.end();
    },
  };
}

/** Publishes an event to the hanging addresses, then one to a healthy address, which must arrive meanwhile. */
async function attack(world: World, hanging: Receiver, urls: string[]) {
  for (const url of urls) await world.subscribe(url, { event_types: ['session.declined'] });
  const healthy = await ownReceiver();
  await world.subscribe(healthy.url, { event_types: ['session.approved'] });
  await world.publish(sampleEvent({ type: 'session.declined' }));
  await hanging.received(10, isDelivery);
  await world.publish(sampleEvent());
  await healthy.received(1, isDelivery);
  // Deliveries that got no slot wait in the parked lane of their own address.
  await eventually('the others are parked', async () => {
    const lanes = await world.redis.keys(`${world.prefix}:{0}:parked:*`);
    return lanes.length === urls.length - 10;
  });
}

describe('many addresses that hang', () => {
  it('share ADDRESS_CONCURRENCY requests in flight on one host, and are all delivered once the host responds', async () => {
    const world = await ownWorld();
    const { receiver, mostAtOnce, respond } = await hangingReceiver();
    await attack(
      world,
      receiver,
      Array.from({ length: ADDRESSES }, (_, i) => `${receiver.url}/${i}`),
    );
    expect(mostAtOnce()).toBe(10);
    respond();
    await receiver.received(ADDRESSES, isDelivery);
  });

  it('share ADDRESS_CONCURRENCY requests in flight under many names of one IP', async () => {
    const names = await startNameServer(() => ['127.0.0.1']);
    atEnd(() => names.close());
    const world = await ownWorld({ env: { DNS_SERVERS: names.address } });
    const { receiver, mostAtOnce, respond } = await hangingReceiver();
    await attack(
      world,
      receiver,
      Array.from({ length: ADDRESSES }, (_, i) => `http://customer-${i}.test:${receiver.port}/`),
    );
    expect(mostAtOnce()).toBe(10);
    respond();
    await receiver.received(ADDRESSES, isDelivery);
  });

  it('share HOST_CONCURRENCY requests in flight if it is set', async () => {
    const world = await ownWorld({ env: { HOST_CONCURRENCY: '3' } });
    const { receiver, mostAtOnce, respond } = await hangingReceiver();
    for (let i = 0; i < 6; i++) await world.subscribe(`${receiver.url}/${i}`);
    await world.publish(sampleEvent());
    await eventually('the others are parked', async () => {
      return (await world.redis.keys(`${world.prefix}:{0}:parked:*`)).length === 3;
    });
    await receiver.received(3, isDelivery);
    expect(mostAtOnce()).toBe(3);
    respond();
    await receiver.received(6, isDelivery);
  });
});

describe('an address that hangs where operators limit how many jobs may be active', () => {
  it('leaves places to others, in all workers together, and is all delivered once it responds', async () => {
    const world = await ownWorld({ workers: 2 });
    await world.redis.hset(`${world.prefix}:{0}:deliveries:meta`, 'concurrency', 4);
    const { receiver, mostAtOnce, respond } = await hangingReceiver();
    await world.subscribe(receiver.url, { event_types: ['session.declined'] });
    const healthy = await ownReceiver();
    await world.subscribe(healthy.url, { event_types: ['session.approved'] });
    await world.publishBatch(Array.from({ length: 50 }, () => sampleEvent({ type: 'session.declined' })));
    await receiver.received(2, isDelivery);
    for (let count = 1; count <= 3; count++) {
      await world.publish(sampleEvent());
      await healthy.received(count, isDelivery);
    }
    expect(mostAtOnce()).toBe(2);
    respond();
    await receiver.received(50, isDelivery);
  });
});
