/**
 * What the Redis servers report about themselves: their memory, their clock, and whether they keep what they accept.
 */
import type { Store } from '../store.ts';
import { describeEviction, masters, readInfo, unsafetiesOf } from './check-server.ts';
import { typedError } from './storage-errors.ts';

interface FullestMaster {
  /** Where it listens; undefined if it is the only one. */
  address: string | undefined;
  share: number;
}

export interface ServerState {
  /** Memory used by all masters, in bytes; null if a server does not report it. */
  usedBytes: number | null;
  /**
   * Memory that all masters may use (`maxmemory`, or that of their machines), in bytes; null if a server does not
   * report it.
   */
  capacityBytes: number | null;
  /**
   * The master that is fullest: it refuses writes while others may still have room. Null if none reports its memory.
   */
  fullest: FullestMaster | null;
  /**
   * This process's clock minus that of Redis; with several masters, the largest difference. Includes half a round trip
   * at most.
   */
  clockOffsetMs: number;
  /** That a server may evict keys, as a sentence without its full stop; undefined if none may. */
  eviction: string | undefined;
  /** By what any server may lose accepted events; null if one does not report it. */
  unsafe: ReturnType<typeof unsafetiesOf> | null;
}

/** Reads the state of every master. Throws `StorageUnavailable`. */
export async function readServerState(store: Store, now: () => number): Promise<ServerState> {
  const reads = Promise.all(
    masters(store.redis).map(async (server, _, { length }) => {
      const sentAtMs = now();
      const [seconds, microseconds] = await server.time();
      const redisMs = Number(seconds) * 1000 + Number(microseconds) / 1000;
      const clockOffsetMs = (sentAtMs + now()) / 2 - redisMs;
      const info = await readInfo(server);
      const capacity = Number(info?.get('maxmemory') ?? 0) || Number(info?.get('total_system_memory') ?? 0);
      return {
        usedBytes: Number(info?.get('used_memory') ?? 0) || null,
        capacityBytes: capacity || null,
        address: length === 1 ? undefined : `${server.options.host}:${server.options.port}`,
        clockOffsetMs,
        info,
      };
    }),
  );
  // The connections to single servers of a Cluster have errors without types.
  const servers = await reads.catch((error: Error) => Promise.reject(typedError(error)));
  const known = servers.map(({ info }) => info).filter((info) => info !== undefined);
  const offsets = servers.map(({ clockOffsetMs }) => clockOffsetMs);
  return {
    usedBytes: sumIfKnown(servers.map(({ usedBytes }) => usedBytes)),
    capacityBytes: sumIfKnown(servers.map(({ capacityBytes }) => capacityBytes)),
    fullest: fullestOf(servers),
    clockOffsetMs: offsets.reduce((most, one) => (Math.abs(one) > Math.abs(most) ? one : most), 0),
    eviction: known.map(describeEviction).find((eviction) => eviction !== undefined),
    unsafe: known.length < servers.length ? null : unsafetiesOf(known),
  };
}

type Memory = Pick<ServerState, 'usedBytes' | 'capacityBytes'> & Pick<FullestMaster, 'address'>;

function fullestOf(servers: readonly Memory[]): FullestMaster | null {
  const shares = servers.flatMap(({ address, usedBytes, capacityBytes }) =>
    usedBytes === null || capacityBytes === null ? [] : [{ address, share: usedBytes / capacityBytes }],
  );
  return shares.sort((a, b) => b.share - a.share)[0] ?? null;
}

/** Null if any is unknown: a sum of some servers would look like the whole. */
function sumIfKnown(values: (number | null)[]): number | null {
  return values.reduce<number | null>((sum, one) => (sum === null || one === null ? null : sum + one), 0);
}
