/**
 * Sends the commands of one turn of the event loop in one write to the socket: the writes are what Redis costs a busy
 * process most.
 */
import { Cluster, type Redis } from 'ioredis';

/**
 * Joins the writes of a connection, or of those to all nodes of a Cluster. Cheaper than the pipelines that ioredis
 * makes by itself, which prepare every script for each pipeline, and no command depends on another one of its turn.
 */
export function joinWrites(redis: Redis | Cluster): void {
  if (redis instanceof Cluster) {
    redis.on('+node', joinWrites);
    return;
  }
  const send = redis.sendCommand;
  redis.sendCommand = (...args) => {
    const { stream } = redis;
    if (isAtOnce) {
      const sent = send.apply(redis, args);
      // Whatever was to uncork it does nothing then.
      stream?.uncork();
      return sent;
    }
    if (redis.status === 'ready' && stream && stream.writableCorked === 0) {
      stream.cork();
      const uncork = () => stream.uncork();
      if (isEndOfTurn) process.nextTick(uncork);
      else setImmediate(uncork);
    }
    return send.apply(redis, args);
  };
}

let isEndOfTurn = false;
let isAtOnce = false;

/**
 * Calls `send`. The commands that it sends at once, and those that wait to be written on their connection, do not wait
 * for the end of this turn.
 */
export function writeAtOnce<T>(send: () => T): T {
  isAtOnce = true;
  try {
    return send();
  } finally {
    isAtOnce = false;
  }
}

/**
 * Calls `send` at the end of this turn of the event loop. The commands that it sends are in one write too, which does
 * not wait for another turn.
 */
export function atEndOfTurn(send: () => void): void {
  setImmediate(() => {
    isEndOfTurn = true;
    try {
      send();
    } finally {
      isEndOfTurn = false;
    }
  });
}
