/** What the `INFO` of a running Redis says about its safety. */
import { expect, it, jest } from '@jest/globals';
import { Cluster, Redis } from 'ioredis';
import { checkServer, unsafetiesOf } from './check-server.ts';

const SAFE = { eviction: false, no_append_only_file: false, aof_rewrite_failed: false, aof_write_failed: false };
const well = { aof_enabled: '1', aof_last_bgrewrite_status: 'ok', aof_last_write_status: 'ok' };
/** Of two servers, of which one is well. */
const of = (fields: Record<string, string>) =>
  unsafetiesOf([well, fields].map((info) => new Map(Object.entries<string>(info))));

it('each field tells one reason for which events may be lost, and a missing one none', () => {
  expect(of({})).toEqual(SAFE);
  expect(of({ ...well, maxmemory_policy: 'noeviction' })).toEqual(SAFE);
  expect(of({ maxmemory_policy: 'volatile-ttl' })).toEqual({ ...SAFE, eviction: true });
  expect(of({ ...well, aof_enabled: '0' })).toEqual({ ...SAFE, no_append_only_file: true });
  expect(of({ ...well, aof_last_bgrewrite_status: 'err' })).toEqual({ ...SAFE, aof_rewrite_failed: true });
  expect(of({ ...well, aof_last_write_status: 'err' })).toEqual({ ...SAFE, aof_write_failed: true });
});

it('a Cluster has one warning for all of its masters that are the same, with their addresses', async () => {
  const cluster = new Cluster([{ host: 'a', port: 1 }], { lazyConnect: true });
  const master = (host: string, maxmemory: number) => {
    const server = new Redis({ host, port: 7000, lazyConnect: true });
    const fields = [`maxmemory:${maxmemory}`, 'connected_slaves:1', 'min_slaves_good_slaves:1'];
    jest.spyOn(server, 'info').mockResolvedValue(['redis_version:7.2.0', ...fields].join('\r\n'));
    return server;
  };
  jest.spyOn(cluster, 'nodes').mockReturnValue([master('a', 0), master('b', 1_000_000), master('c', 0)]);
  expect(await checkServer(cluster)).toEqual([
    expect.stringMatching(/^Redis has no memory limit .* That is so on a:7000, c:7000\.$/),
  ]);
});
