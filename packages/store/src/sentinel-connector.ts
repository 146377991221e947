/** Connects to the master that the sentinels name, and to the next one after each failover. */
import { type RedisOptions, SentinelConnector } from 'ioredis';

/**
 * ioredis's own connector, except that a failover can't end the connection for good. ioredis would take a sentinel's
 * report of a failover for a call of `disconnect` if it came while the new master is already being looked up, because
 * the old one had closed the connection.
 */
class LastingSentinelConnector extends SentinelConnector {
  override connect(...args: Parameters<SentinelConnector['connect']>) {
    // Removes the listeners of the connection before this one.
    this.disconnect();
    return super.connect(...args);
  }
}

/** For the options of ioredis, which duplicates of a connection share (BullMQ makes some). */
export const sentinelConnector = LastingSentinelConnector as unknown as NonNullable<RedisOptions['Connector']>;
