/** Connects to the master that the sentinels name, and to the next one after each failover. */
import { type RedisOptions, SentinelConnector } from 'ioredis';

/**
 * ioredis's own connector, but a failover can't end the connection for good. A sentinel's word of a failover that comes while the new
 * master is looked for already, because the old one had closed the connection, would be taken for an order to disconnect.
 */
class LastingSentinelConnector extends SentinelConnector {
  override connect(...args: Parameters<SentinelConnector['connect']>) {
    // Nothing of the connection before this one is listened to any more.
    this.disconnect();
    return super.connect(...args);
  }
}

/** For ioredis's options, which its duplicates share (BullMQ makes some). */
export const sentinelConnector = LastingSentinelConnector as unknown as NonNullable<RedisOptions['Connector']>;
