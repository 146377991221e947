/** What the `INFO` of a running Redis says about its safety. */
import { expect, it } from '@jest/globals';
import { unsafetiesOf } from './check-server.ts';

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
