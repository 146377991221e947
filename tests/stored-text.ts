/** What is stored, as text: to look for what must not be there. */
import type { connectRedis } from '@posthorn/store';

type Redis = ReturnType<typeof connectRedis>;

/** All keys under a prefix, with their content. */
export async function storedText(redis: Redis, prefix: string): Promise<string> {
  const keys = await redis.keys(`${prefix}:*`);
  const lines = await Promise.all(keys.map(async (key) => `${key}\n${await readKey(redis, key)}`));
  return lines.join('\n');
}

/** The content of a key of any type. */
async function readKey(redis: Redis, key: string): Promise<string> {
  const readers: Record<string, () => Promise<unknown>> = {
    string: () => redis.get(key),
    hash: () => redis.hgetall(key),
    list: () => redis.lrange(key, 0, -1),
    set: () => redis.smembers(key),
    zset: () => redis.zrange(key, '0', '-1'),
    stream: () => redis.xrange(key, '-', '+'),
    none: async () => '',
  };
  return JSON.stringify(await readers[await redis.type(key)]!());
}
