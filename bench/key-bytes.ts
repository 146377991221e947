/** Where the bytes of Redis are: by kind of key, from MEMORY USAGE, and what Redis needs beside the keys. */
import { type Cluster, Redis } from 'ioredis';

interface BytesByKind {
  /**
   * Keys and bytes of each kind, the most bytes first. A key's bytes contain its name, its value and its entry in the
   * table of keys.
   */
  kinds: { kind: string; keys: number; bytes: number }[];
  /** Entries in the table of expiries: each is an entry of 24 bytes and a pointer to it. */
  expiries: number;
}

const EXPIRY_BYTES = 32;

/** Measures all keys of a database, 1,000 at a time. */
export async function bytesByKind(redis: Redis | Cluster): Promise<BytesByKind> {
  if (!(redis instanceof Redis)) throw new Error('Only a single Redis can be measured');
  const found = new Map<string, { keys: number; bytes: number }>();
  for await (const keys of redis.scanStream({ count: 1_000 }) as AsyncIterable<string[]>) {
    const pipeline = redis.pipeline();
    for (const key of keys) pipeline.memory('USAGE', key, 'SAMPLES', 0);
    const replies = (await pipeline.exec()) ?? [];
    for (const [i, key] of keys.entries()) {
      const kind = kindOf(key);
      const of = found.get(kind) ?? { keys: 0, bytes: 0 };
      found.set(kind, { keys: of.keys + 1, bytes: of.bytes + Number(replies[i]?.[1] ?? 0) });
    }
  }
  const kinds = Array.from(found, ([kind, of]) => ({ kind, ...of })).sort((a, b) => b.bytes - a.bytes);
  const expiries = Number(/expires=(\d+)/.exec(await redis.info('keyspace'))?.[1] ?? 0);
  return { kinds, expiries };
}

/** A key without its prefix and its id: `delivery`, `by_status:pending`, `deliveries` for a job. */
function kindOf(key: string): string {
  const name = key.replace(/^.*?\{\d+\}:/, '');
  return name
    .replace(/:\/.*$/, ' and delivery')
    .replace(/:(evt|dlv|sub|rpl)_.*$/, '')
    .replace(/:[dh]\d+:.*$/, '');
}

/**
 * A row for each kind that takes at least a byte of each delivery, then what is left of `totalBytes`, all divided by
 * the deliveries.
 */
export function rowsOf(
  { kinds, expiries }: BytesByKind,
  totalBytes: number,
  deliveries: number,
): Record<string, number> {
  const rows: Record<string, number> = {};
  for (const { kind, bytes } of kinds) if (bytes >= deliveries) rows[kind] = bytes / deliveries;
  rows['entries in the table of expiries'] = (expiries * EXPIRY_BYTES) / deliveries;
  const named = Object.values(rows).reduce((sum, bytes) => sum + bytes, 0);
  rows['the rest: other keys, tables of keys, free space'] = totalBytes / deliveries - named;
  return rows;
}
