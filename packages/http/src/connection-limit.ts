/** Limits the connections per client, so that one client cannot use all of them. */
import type { Server } from 'node:http';
import { BlockList, isIPv6, type Socket } from 'node:net';
import { Counter, type Registry } from 'prom-client';
import { ipNetwork } from './ip-network.ts';

const REFUSED = 'posthorn_connections_refused_total';

/**
 * Closes and counts connections that exceed the `max` of their client: an IPv4 address or the /64 of an IPv6 address.
 * It does not apply where `isProxy`, because a proxy connects for all of its clients. Several servers of a process may
 * share the counter. The listener runs before other `connection` listeners.
 */
export function limitConnections(
  server: Server,
  { max, isProxy, registry }: { max: number; isProxy: (socket: Socket) => boolean; registry: Registry },
): void {
  const refused = (registry.getSingleMetric(REFUSED) ??
    new Counter({
      name: REFUSED,
      help: 'Connections closed as they came, by reason: client_limit, process_limit',
      labelNames: ['reason'],
      registers: [registry],
    })) as Counter<'reason'>;
  // Samples of 0 from the first scrape on: otherwise the first refusals would not show as an increase.
  for (const reason of ['client_limit', 'process_limit']) refused.inc({ reason }, 0);
  const open = new Map<string, number>();
  server.on('drop', () => refused.inc({ reason: 'process_limit' }));
  server.prependListener('connection', (socket) => {
    const { remoteAddress } = socket;
    // A connection without an address is closed already.
    if (remoteAddress === undefined || isProxy(socket)) return;
    const client = ipNetwork(remoteAddress);
    const count = (open.get(client) ?? 0) + 1;
    if (count > max) {
      refused.inc({ reason: 'client_limit' });
      socket.resetAndDestroy();
      return;
    }
    open.set(client, count);
    socket.once('close', () => {
      const left = (open.get(client) ?? 0) - 1;
      if (left <= 0) open.delete(client);
      else open.set(client, left);
    });
  });
}

/** Returns a function that says whether a connection comes from one of these networks. */
export function proxyTest(networks: readonly string[]): (socket: Socket) => boolean {
  const list = new BlockList();
  for (const network of networks) {
    const [address, prefix] = network.split('/') as [string, string];
    list.addSubnet(address, Number(prefix), isIPv6(address) ? 'ipv6' : 'ipv4');
  }
  return ({ remoteAddress = '' }) => list.check(remoteAddress, isIPv6(remoteAddress) ? 'ipv6' : 'ipv4');
}
