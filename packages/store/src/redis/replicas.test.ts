/** How many replicas a master has, as `INFO` says it. */
import { expect, it } from '@jest/globals';
import { liveReplicas } from './replicas.ts';

const of = (...replicas: string[]) =>
  liveReplicas(
    ['# Replication', 'role:master', ...replicas.map((text, i) => `slave${i}:${text}`), 'x:lag=1', ''].join('\r\n'),
  );

it.each([
  ['Redis', ''],
  ['Valkey', ',type=replica'],
])('counts the replicas of %s that are online and acknowledge', (_server, more) => {
  const replica = (state: string, lag: number) =>
    `ip=127.0.0.1,port=6380,state=${state},offset=${lag},lag=${lag}${more}`;
  expect(of()).toBe(0);
  expect(of(replica('online', 0), replica('online', 2))).toBe(2);
  expect(of(replica('online', 3), replica('online', 10), replica('online', 1), replica('wait_bgsave', 0))).toBe(1);
});
