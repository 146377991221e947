/** The time limit of an attempt: it fires when it is due and not later, but not before what has arrived is read. */
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { expect, it, jest } from '@jest/globals';
import { HOUR_MS } from '@posthorn/core';
import { eventually, startReceiver } from '@posthorn/testing';
import { createOneOffSender, createResolver, createSender, parseNetworks } from './index.ts';

function optionsWith(timeoutMs: number) {
  const allowedNetworks = parseNetworks('127.0.0.0/8');
  return { allowedNetworks, timeoutMs, userAgent: 'test', resolve: createResolver() };
}
const senderWith = (timeoutMs: number) => createSender(optionsWith(timeoutMs));

/**
 * The sender's timers and this test's are in one event loop and fire in the order in which they are due, however slow
 * the machine is. So no clock is read here. Both let the event loop read before they act.
 */
it.each([
  ['a receiver that never responds', 'a first request'],
  ['a receiver that never responds any more', 'a kept connection'],
])('gives %s up before a timer that is due 500 ms after the limit (%s)', async (_receiver, connection) => {
  const limitMs = 250;
  let isHanging = false;
  const receiver = await startReceiver((_request, response) => {
    if (!isHanging) response.writeHead(200).end();
  });
  const sender = senderWith(limitMs);
  const request = { url: receiver.url, headers: {}, body: '{}' };
  try {
    // On a busy machine, a response may take longer than the limit.
    if (connection === 'a kept connection')
      await eventually('a response', async () => (await sender.send(request)).kind === 'responded');
    isHanging = true;
    const order: string[] = [];
    const attempt = sender.send(request).then(({ kind }) => order.push(kind));
    const late = new Promise<void>((resolve) => {
      setTimeout(() => setImmediate(() => resolve(void order.push('500 ms after the limit'))), limitMs + 500);
    });
    await Promise.all([attempt, late]);
    expect(order).toEqual(['timed_out', '500 ms after the limit']);
  } finally {
    sender.close();
    await receiver.close();
  }
});

it('takes a response that arrived while the process stood still, although the limit is reached before it is read', async () => {
  const answered = new Int32Array(new SharedArrayBuffer(4));
  const thread = new Worker(RECEIVER, { eval: true, workerData: answered });
  const [port] = (await once(thread, 'message')) as [number];
  const limitMs = HOUR_MS;
  const sender = senderWith(limitMs);
  const timers = jest.spyOn(globalThis, 'setTimeout');
  const standStill = () => {
    Atomics.wait(answered, 0, 0);
    const limit = timers.mock.calls.find(([, ms]) => ms === limitMs);
    limit?.[0]();
  };
  const mayStart = () => {
    // Once the request is written.
    setImmediate(standStill);
    return true;
  };
  try {
    const request = { url: `http://127.0.0.1:${port}/`, headers: {}, body: '{}', mayStart };
    expect(await sender.send(request)).toMatchObject({ kind: 'responded', statusCode: 200 });
  } finally {
    timers.mockRestore();
    sender.close();
    await thread.terminate();
  }
});

it('takes one of a single request as well', async () => {
  // The sender may go on; the response is sent.
  const signals = new Int32Array(new SharedArrayBuffer(8));
  const thread = new Worker(WAITING_RECEIVER, { eval: true, workerData: signals });
  const [port] = (await once(thread, 'message')) as [number];
  const limitMs = HOUR_MS;
  const sender = createOneOffSender(optionsWith(limitMs));
  const timers = jest.spyOn(globalThis, 'setTimeout');
  try {
    const received = once(thread, 'message');
    const sent = sender.send({ url: `http://127.0.0.1:${port}/`, headers: {}, body: '{}' });
    await received;
    setTimeout(() => {
      Atomics.store(signals, 0, 1);
      Atomics.notify(signals, 0);
      Atomics.wait(signals, 1, 0);
      timers.mock.calls.find(([, ms]) => ms === limitMs)?.[0]();
    });
    expect(await sent).toMatchObject({ kind: 'responded', statusCode: 200 });
  } finally {
    timers.mockRestore();
    sender.close();
    await thread.terminate();
  }
});

/** A receiver in a thread, which goes on while that of the sender stands still. Says when its response is sent. */
const RECEIVER = `
const { createServer } = require('node:http');
const { parentPort, workerData } = require('node:worker_threads');
const server = createServer((request, response) => {
  request.resume();
  request.on('end', () => response.end(() => {
    Atomics.store(workerData, 0, 1);
    Atomics.notify(workerData, 0);
  }));
});
server.listen(0, '127.0.0.1', () => parentPort.postMessage(server.address().port));
`;

/** One that says when it has received the request, and then waits before it responds. */
const WAITING_RECEIVER = `
const { createServer } = require('node:http');
const { parentPort, workerData } = require('node:worker_threads');
const server = createServer((request, response) => {
  request.resume();
  request.on('end', () => {
    parentPort.postMessage('received');
    Atomics.wait(workerData, 0, 0);
    response.end(() => {
      Atomics.store(workerData, 1, 1);
      Atomics.notify(workerData, 1);
    });
  });
});
server.listen(0, '127.0.0.1', () => parentPort.postMessage(server.address().port));
`;
