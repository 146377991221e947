/**
 * The IPs of a name: how long a sender tries one before it starts with the next, and which of them have to be admitted.
 */
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { Socket } from 'node:net';
import { describe, expect, it } from '@jest/globals';
import { startBlackHole } from '@posthorn/testing';
import { atEnd } from '@posthorn/testing/at-end';
import { post, resolvingTo, responded, senderKinds, testReceiver, testSender } from './test-sender.ts';

const BLACK_HOLE = '127.9.9.9';
/** Node publishes each socket here before it connects. */
const SOCKETS = 'net.client.socket';

describe.each(senderKinds)('%s: a name whose first IP drops packets', (kind) => {
  it('is tried at its next IP after two seconds', async () => {
    const receiver = await testReceiver();
    const hole = await startBlackHole(BLACK_HOLE, receiver.port);
    atEnd(() => hole.close());
    const from = testSender({ resolve: resolvingTo(BLACK_HOLE, '127.0.0.1') }, kind);
    const order: string[] = [];
    const tries = (ip: string) => {
      // Timers that begin in the same step as the limit, in this event loop: they fire in the order in which they are
      // due, however late.
      if (order.push(ip) === 1) for (const ms of [1_900, 2_100]) setTimeout(() => order.push(`${ms} ms`), ms);
    };
    const watch = (message: unknown) => (message as { socket: Socket }).socket.on('connectionAttempt', tries);
    subscribe(SOCKETS, watch);
    atEnd(() => unsubscribe(SOCKETS, watch));
    expect(await from.send(post(receiver.url.replace('127.0.0.1', 'receiver.test')))).toEqual(responded());
    expect(order.slice(0, 3)).toEqual([BLACK_HOLE, '1900 ms', '127.0.0.1']);
  });
});

describe('a name whose first IP refuses connections', () => {
  it.each([true, false])('needs to be admitted at the IP that it is connected to as well: %s', async (isAdmitted) => {
    const receiver = await testReceiver();
    const from = testSender({ resolve: resolvingTo(BLACK_HOLE, '127.0.0.1') });
    const asked: string[] = [];
    const admit = (ip: string) => asked.push(ip) === 1 || isAdmitted;
    const result = await from.send({ ...post(receiver.url.replace('127.0.0.1', 'receiver.test')), admit });
    expect(result).toEqual(isAdmitted ? responded() : { kind: 'not_admitted', ip: '127.0.0.1' });
    expect(asked).toEqual([BLACK_HOLE, '127.0.0.1']);
    expect(receiver.requests).toHaveLength(Number(isAdmitted));
  });
});
