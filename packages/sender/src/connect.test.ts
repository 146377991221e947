/** How long a sender tries one IP of a name before it starts with the next. */
import { describe, expect, it } from '@jest/globals';
import { startBlackHole } from '@posthorn/testing';
import { atEnd, post, resolvingTo, responded, senderKinds, testReceiver, testSender } from './test-sender.ts';

const BLACK_HOLE = '127.9.9.9';

describe.each(senderKinds)('%s: a name whose first IP drops packets', (kind) => {
  it('is tried at its next IP after two seconds', async () => {
    const receiver = await testReceiver();
    const hole = await startBlackHole(BLACK_HOLE, receiver.port);
    atEnd(() => hole.close());
    const from = testSender({ resolve: resolvingTo(BLACK_HOLE, '127.0.0.1') }, kind);
    // All timers are in this event loop and fire in the order in which they are due. The second one leaves three seconds for the request.
    const order: string[] = [];
    const timers = [1_900, 5_000].map((ms) => setTimeout(() => order.push(`${ms} ms`), ms));
    atEnd(() => timers.forEach(clearTimeout));
    expect(await from.send(post(receiver.url.replace('127.0.0.1', 'receiver.test')))).toEqual(responded());
    expect(order).toEqual(['1900 ms']);
  });
});
