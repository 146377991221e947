/** Makes `connect()` of a Redis Cluster client settle in every case. */
import type { Cluster } from 'ioredis';

/**
 * Makes `connect()` reject when the connection that it began is closed; the same for every duplicate of the client. In
 * ioredis the promise stays pending forever if the node that was asked reports `cluster_state:fail`
 * (https://github.com/redis/ioredis/pull/741). After an outage, BullMQ awaits `connect()` on the blocking connection of
 * each worker: that worker would never take a job again.
 */
export function settleConnect(cluster: Cluster): Cluster {
  const connect = cluster.connect.bind(cluster);
  const duplicate = cluster.duplicate.bind(cluster);
  cluster.connect = async () => {
    const closed = Promise.withResolvers<never>();
    const onClose = () => closed.reject(new Error('Connection is closed.'));
    cluster.once('close', onClose);
    try {
      await Promise.race([connect(), closed.promise]);
    } finally {
      cluster.off('close', onClose);
    }
  };
  cluster.duplicate = ((...args: Parameters<typeof duplicate>) =>
    settleConnect(duplicate(...args))) as typeof cluster.duplicate;
  return cluster;
}
