/** Leaves a server of a Redis Cluster that hangs once another one has taken over from it. */
import type { Cluster, Command } from 'ioredis';

/** Longer than a command takes, and than a connection waits for replicas (`replicas.ts`). */
const LOOK_MS = 2_000;

/**
 * Asks the Cluster who has which slots while a server owes the reply to a command. One that hangs can't say that it was
 * replaced, and the client asks only after an error: it would wait until it gives up the connection, after 20 s. Not
 * for connections that block.
 */
export function leaveReplacedServers(cluster: Cluster): void {
  let owed = new Set<Command>();
  const timer = setInterval(() => {
    // Redis replies in order, so the first command of each connection has waited longest.
    const first = cluster.nodes().flatMap(({ commandQueue }) => (commandQueue.peekFront()?.command as Command) ?? []);
    if (first.some((command) => owed.has(command))) cluster.refreshSlotsCache();
    owed = new Set(first);
  }, LOOK_MS);
  timer.unref();
  cluster.once('end', () => clearInterval(timer));
}
