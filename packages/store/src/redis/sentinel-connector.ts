/** Connects to the master that the sentinels name, and to the next one after each failover. */
import { type RedisOptions, SentinelConnector } from 'ioredis';

type Emit = Parameters<SentinelConnector['connect']>[0];

/**
 * ioredis's own connector, except for three things. A failover can't end the connection for good: ioredis would take a
 * sentinel's report of a failover for a call of `disconnect` if it came while the new master is already being looked
 * up, because the old one had closed the connection. It ends each connection once: ioredis would add listeners to the
 * same closed sockets with each attempt, until Node warns of a leak. And it says that all sentinels have failed only if
 * one has: each attempt to connect to a dead master uses up one of the list, and ioredis says it at the end of the list
 * too.
 */
class LastingSentinelConnector extends SentinelConnector {
  override connect(emit: Emit) {
    // Removes the listeners of the connection before this one.
    this.disconnect();
    let hasFailed = false;
    return super.connect((type, error) => {
      if (type === 'sentinelError') hasFailed = true;
      if (type !== 'error' || hasFailed) emit(type, error);
    });
  }

  override disconnect(): void {
    super.disconnect();
    Object.assign(this, { stream: undefined, failoverDetector: null });
  }
}

/** For the options of ioredis, which duplicates of a connection share (BullMQ makes some). */
export const sentinelConnector = LastingSentinelConnector as unknown as NonNullable<RedisOptions['Connector']>;
