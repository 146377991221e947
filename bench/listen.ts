/** What the servers of the bench have in common: each is a process, which says where it listens. */
import type { AddressInfo, Server } from 'node:net';

/**
 * Listens, prints the `ready` line with the URL, and ends with SIGTERM or with the process that has started this one.
 */
export function listen(server: Server, host = '127.0.0.1', port = 0): void {
  server.listen(port, host, () => {
    const url = `http://${host}:${(server.address() as AddressInfo).port}`;
    process.stdout.write(`${JSON.stringify({ msg: 'ready', url })}\n`);
  });
  process.on('SIGTERM', () => process.exit(0));
  process.on('disconnect', () => process.exit(0));
}
