/** TLS handshakes that fail and block the event loop: how many of them one host gets. */
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { createServer } from 'node:https';
import { createServer as createTcpServer, type Socket } from 'node:net';
import { describe, expect, it, jest } from '@jest/globals';
import { fakeClock, testCertificate } from '@posthorn/testing';
import { atEnd } from '@posthorn/testing/at-end';
import { createCostlyHandshakes } from './costly-handshakes.ts';
import { listening, post, resolvingTo, testSender } from './test-sender.ts';

const UNTRUSTED = { kind: 'connection_failed', error: 'tls', detail: 'DEPTH_ZERO_SELF_SIGNED_CERT', ip: '127.0.0.1' };
const FAILURE = { error: Object.assign(new Error('certificate'), { code: 'EPROTO' }), ip: '203.0.113.1' };
const FAILED = { kind: 'connection_failed', error: 'tls', detail: 'EPROTO', ip: '203.0.113.1' };
const HOST = 'receiver.test';
const VERIFIED = { abort: () => undefined, hasCertificate: () => true };

/**
 * A receiver that nobody trusts. By the test's clocks, the verification of its certificate takes `ms`, and as much CPU
 * unless `cpuMs` says so.
 */
async function costlyReceiver() {
  const clock = fakeClock(0);
  const cpu = fakeClock(0);
  const cost: { ms: number; cpuMs?: number } = { ms: 0 };
  let handshakes = 0;
  const verify = () => {
    handshakes += 1;
    clock.advance(cost.ms);
    cpu.advance(cost.cpuMs ?? cost.ms);
  };
  const watch = (message: unknown) => (message as { socket: Socket }).socket.prependListener('secure', verify);
  subscribe('net.client.socket', watch);
  atEnd(() => unsubscribe('net.client.socket', watch));
  const url = `https://${HOST}:${await listening(createServer(testCertificate), '127.0.0.1')}/`;
  const from = testSender({ resolve: resolvingTo('127.0.0.1'), now: clock.now, cpuNow: cpu.now });
  return { clock, cost, send: () => from.send(post(url)), handshakes: () => handshakes };
}

describe('a host whose handshakes fail', () => {
  it('gets no connection for 100 times as long as one has blocked the event loop: attempts end as that one', async () => {
    const { clock, cost, send, handshakes } = await costlyReceiver();
    cost.ms = 60;
    expect(await send()).toEqual(UNTRUSTED);
    expect(await send()).toEqual(UNTRUSTED);
    clock.advance(5_999);
    expect(await send()).toEqual(UNTRUSTED);
    expect(handshakes()).toBe(1);
    clock.advance(1);
    cost.ms = 0;
    for (let i = 0; i < 2; i++) expect(await send()).toEqual(UNTRUSTED);
    expect(handshakes()).toBe(3);
  });
  it('gets one for each attempt if they take less than 50 ms', async () => {
    const { cost, send, handshakes } = await costlyReceiver();
    cost.ms = 49;
    for (let i = 0; i < 3; i++) await send();
    expect(handshakes()).toBe(3);
  });
  it('gets one for each attempt if the process only stood still meanwhile', async () => {
    const { cost, send, handshakes } = await costlyReceiver();
    cost.ms = 3_000;
    cost.cpuMs = 49;
    for (let i = 0; i < 3; i++) await send();
    expect(handshakes()).toBe(3);
  });
});

it('does not take a host that hangs in the handshake for one that blocks the event loop: others may', async () => {
  let connections = 0;
  const server = createTcpServer((socket) => {
    connections += 1;
    socket.on('error', () => undefined).resume();
  });
  const url = `https://${HOST}:${await listening(server, '127.0.0.1')}/`;
  let cpuMs = 0;
  const cpuNow = () => {
    cpuMs += 60;
    return cpuMs;
  };
  const from = testSender({ resolve: resolvingTo('127.0.0.1'), cpuNow, timeoutMs: 300 });
  for (let i = 0; i < 2; i++) expect(await from.send(post(url))).toMatchObject({ kind: 'timed_out' });
  expect(connections).toBe(2);
});

it('reads the certificate of a handshake once: reading those of many could block the event loop again and again', () => {
  let cpuMs = 0;
  const handshakes = createCostlyHandshakes(
    () => 0,
    () => cpuMs,
  );
  const hasCertificate = jest.fn(() => true).mockReturnValueOnce(false);
  const begun = handshakes.begin(HOST, { ...VERIFIED, hasCertificate });
  for (let i = 0; i < 4; i++) {
    cpuMs += 60;
    handshakes.end(handshakes.begin('other.test', VERIFIED), undefined);
  }
  handshakes.end(begun, FAILURE);
  expect(hasCertificate).toHaveBeenCalledTimes(2);
  expect(handshakes.refusal(HOST)).toEqual(FAILED);
});

it('ends the other handshakes with the host that are in progress, or begin in the pause', () => {
  const clock = fakeClock(0);
  const handshakes = createCostlyHandshakes(clock.now, clock.now);
  const [first, ...others] = [HOST, HOST, 'other.test'].map((host) => {
    const abort = jest.fn();
    return { abort, handshake: handshakes.begin(host, { ...VERIFIED, abort }) };
  });
  clock.advance(60);
  handshakes.end(first!.handshake, FAILURE);
  expect([first, ...others].map((one) => one!.abort.mock.calls)).toEqual([[], [[FAILURE.error]], []]);
  for (const { handshake } of others) handshakes.end(handshake, FAILURE);
  const late = jest.fn();
  handshakes.end(handshakes.begin(HOST, { ...VERIFIED, abort: late }), FAILURE);
  expect(late.mock.calls).toEqual([[FAILURE.error]]);
  expect(handshakes.refusal(HOST)).toEqual(FAILED);
});

it('makes pauses longer while other hosts pause: all together take as much time as one', () => {
  const clock = fakeClock(0);
  const handshakes = createCostlyHandshakes(clock.now, clock.now);
  const pauseAfterMs = (host: string) => {
    const begun = handshakes.begin(host, VERIFIED);
    clock.advance(60);
    handshakes.end(begun, FAILURE);
    const startsAtMs = clock.now();
    return (ms: number) => {
      clock.advance(startsAtMs + ms - clock.now());
      return handshakes.refusal(host) !== undefined;
    };
  };
  const first = pauseAfterMs('a.test');
  const second = pauseAfterMs('b.test');
  expect([first(5_999), first(6_000)]).toEqual([true, false]);
  expect([second(11_999), second(12_000)]).toEqual([true, false]);
  const alone = pauseAfterMs('c.test');
  expect([alone(5_999), alone(6_000)]).toEqual([true, false]);
});

describe('after the pause', () => {
  const clock = fakeClock(0);
  const handshakes = createCostlyHandshakes(clock.now, clock.now);
  const handshake = (ms: number, failure?: typeof FAILURE) => {
    const begun = handshakes.begin(HOST, VERIFIED);
    clock.advance(ms);
    handshakes.end(begun, failure);
  };

  it('one handshake is tried: the others wait for its outcome', () => {
    handshake(5_000, FAILURE);
    clock.advance(299_999);
    expect(handshakes.refusal(HOST)).toEqual(FAILED);
    clock.advance(1);
    expect(handshakes.refusal(HOST)).toBeUndefined();
    expect(handshakes.refusal(HOST)).toEqual(FAILED);
    handshakes.notBegun(HOST);
    expect(handshakes.refusal(HOST)).toBeUndefined();
    handshake(60, FAILURE);
    expect(handshakes.refusal(HOST)).toEqual(FAILED);
  });
  it('a success ends it, whatever it took', () => {
    clock.advance(6_000);
    expect(handshakes.refusal(HOST)).toBeUndefined();
    handshake(5_000);
    for (let i = 0; i < 2; i++) expect(handshakes.refusal(HOST)).toBeUndefined();
  });
});
