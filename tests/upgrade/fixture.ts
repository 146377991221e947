/**
 * A fixture: what one release leaves in Redis, and what its API says about it. The next releases are tested with it.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { connectRedis } from '@posthorn/store';
import { root } from '../../scripts/folder.ts';

export interface Fixture {
  release: string;
  writtenAt: string;
  /** Settings that the data depend on. */
  env: { KEY_PREFIX: string; PARTITIONS: string; SECRET_ENCRYPTION_KEY: string };
  /** By name, which is also the path at the receiver. */
  subscriptions: Record<string, { id: string; secrets: string[] }>;
  /** The events that have not arrived: an upgraded installation still has to deliver them to each subscription. */
  owed: Record<string, string[]>;
  /** The events that have arrived and must not be sent again. */
  arrived: Record<string, string[]>;
  /** Bodies of responses of the operator API, by path. */
  views: Record<string, unknown>;
  /** Key, remaining life in milliseconds (-1: none), and what DUMP returns, in base64. */
  keys: [key: string, lifeMs: number, dump: string][];
}

export const fixturesDir = join(root, 'tests/fixtures');

/** Returns the fixtures of all releases that have one. */
export function readFixtures(): Fixture[] {
  return readdirSync(fixturesDir)
    .filter((file) => /^\d+\.\d+\.\d+\.json$/.test(file))
    .map((file) => JSON.parse(readFileSync(join(fixturesDir, file), 'utf8')) as Fixture);
}

type Client = ReturnType<typeof connectRedis>;

/** Returns every key of an otherwise unused Redis, sorted. */
export async function dumpKeys(redis: Client): Promise<Fixture['keys']> {
  const keys = (await redis.keys('*')).sort();
  const read = keys.map(async (key): Promise<Fixture['keys'][number][]> => {
    const [lifeMs, dump] = [await redis.pttl(key), await redis.dumpBuffer(key)];
    // Expired since its name was read.
    return dump ? [[key, lifeMs, dump.toString('base64')]] : [];
  });
  return (await Promise.all(read)).flat();
}

/** Puts a fixture into an empty Redis. Its keys live for as long as they had left when it was written. */
export async function restoreKeys(redis: Client, { keys }: Pick<Fixture, 'keys'>): Promise<void> {
  for (const [key, lifeMs, dump] of keys) await redis.restore(key, Math.max(0, lifeMs), Buffer.from(dump, 'base64'));
}
