/** For tests of the senders: a sender, a receiver and servers that are closed at the end of the test. */
import type { AddressInfo, Server, Socket } from 'node:net';
import { startReceiver } from '@posthorn/testing';
import { atEnd } from '@posthorn/testing/at-end';
import { createOneOffSender, createResolver, createSender, parseNetworks, type Sender } from './index.ts';
import type { SenderOptions } from './sender.ts';

const SENDERS = { deliveries: createSender, 'single requests': createOneOffSender };
type SenderKind = keyof typeof SENDERS;
export const senderKinds = Object.keys(SENDERS) as SenderKind[];

/**
 * A sender that may connect to loopback, whose time limit no test reaches and whose clock stands still, unless
 * `options` say otherwise: on a busy machine, a receiver that closes a kept connection at once may seem to have taken
 * seconds.
 */
export function testSender(options: Partial<SenderOptions> = {}, kind: SenderKind = 'deliveries'): Sender {
  const made = SENDERS[kind]({
    allowedNetworks: parseNetworks('127.0.0.0/8'),
    timeoutMs: 60_000,
    userAgent: 'Posthorn/test',
    resolve: createResolver(),
    now: () => 0,
    ...options,
  });
  atEnd(() => made.close());
  return made;
}

export async function testReceiver(...args: Parameters<typeof startReceiver>) {
  const started = await startReceiver(...args);
  atEnd(() => started.close());
  return started;
}

/** Has a server of TCP, HTTP or HTTPS listen, on a free port unless one is given; resolves with the port. */
export async function listening(server: Server, host: string, port = 0): Promise<number> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(port, host, resolve));
  atEnd(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

export const post = (url: string, headers: Record<string, string> = {}) => ({ url, headers, body: '{"a":"é"}' });
export const responded = (statusCode = 200) => ({ kind: 'responded', statusCode, ip: '127.0.0.1' });
/** Resolves each name to these addresses. */
export const resolvingTo =
  (...addresses: string[]) =>
  async () =>
    addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }));
