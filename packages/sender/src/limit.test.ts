/** The time limit of an attempt: it fires when it is due and not later. */
import { expect, it } from '@jest/globals';
import { startReceiver } from '@posthorn/testing';
import { createSender, parseNetworks } from './index.ts';

/**
 * The sender's timers and this test's are in one event loop and fire in the order in which they are due, however slow the machine
 * is. So no clock is read here.
 */
it.each([
  ['a receiver that never responds', 'a first request', 1],
  ['a receiver that never responds any more', 'a kept connection', 2],
])('gives %s up before a timer that is due 500 ms after the limit (%s)', async (_receiver, _connection, hangsAt) => {
  const limitMs = 250;
  const receiver = await startReceiver((_request, response) => {
    if (receiver.requests.length < hangsAt) response.writeHead(200).end();
  });
  const sender = createSender({ allowedNetworks: parseNetworks('127.0.0.0/8'), timeoutMs: limitMs, userAgent: 'test' });
  const request = { url: receiver.url, headers: {}, body: '{}' };
  try {
    for (let i = 1; i < hangsAt; i++) expect(await sender.send(request)).toMatchObject({ kind: 'responded' });
    const order: string[] = [];
    const attempt = sender.send(request).then(({ kind }) => order.push(kind));
    const late = new Promise<void>((resolve) => {
      setTimeout(() => resolve(void order.push('500 ms after the limit')), limitMs + 500);
    });
    await Promise.all([attempt, late]);
    expect(order).toEqual(['timed_out', '500 ms after the limit']);
  } finally {
    sender.close();
    await receiver.close();
  }
});
